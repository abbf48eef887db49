/** Objects whose keys are names that users or the cloud choose. Each value must be like a value of the template. */
const FREE_KEYS: ReadonlySet<string> = new Set(["addresses", "extra_specs", "metadata", "hosts", "log"]);

/**
 * Fields whose fixed values in the templates are part of the API, and are compared. The fixed values of all other fields belong to
 * upstream's test cloud (its fake driver, its network, the numbers of its first objects), so only their JSON types are compared.
 */
const FIXED_VALUES: ReadonlySet<string> = new Set([
  ...["OS-DCF:diskConfig", "OS-EXT-STS:power_state", "OS-EXT-STS:task_state", "OS-EXT-STS:vm_state", "action", "code"],
  ...[
    "event",
    "is_public",
    "locked",
    "migration_type",
    "policy",
    "power_action",
    "project",
    "protocol",
    "rel",
    "result",
  ],
  ...["status", "tags", "type", "version", "zoneState"],
]);

/** Fields that can be null in one cloud and set in another. */
const NULLABLE: ReadonlySet<string> = new Set([
  ...["OS-SRV-USG:launched_at", "OS-SRV-USG:terminated_at", "disabled_reason", "ended_at", "key_name", "locked_reason"],
  ...[
    "OS-EXT-SRV-ATTR:kernel_id",
    "OS-EXT-SRV-ATTR:ramdisk_id",
    "OS-EXT-SRV-ATTR:user_data",
    "description",
    "message",
    "password",
    // Nova's libvirt driver measures neither.
    ...["rx_rate", "tx_rate", "utilisation"],
    "updated_at",
    "uptime",
  ],
]);

/** Objects of which only the type is compared, since their keys are a driver's. */
const OF_THE_DRIVER: ReadonlySet<string> = new Set(["cpu_info"]);

/** Lists that can be empty in one cloud and not in another. */
const MAY_BE_EMPTY: ReadonlySet<string> = new Set(["hosts", "members", "os-extended-volumes:volumes_attached"]);

/**
 * Compares an answer with a template as upstream's functional tests do: the keys of objects are the same, values have the same type,
 * variables match their pattern, and the fixed values of the API are equal. A list's items must each be like an item of the template. Returns one line for
 * each difference.
 */
export function differences(template: unknown, answer: unknown, place = ""): readonly string[] {
  const field = place.slice(place.lastIndexOf(".") + 1).replace(/\[\d+\]$/, "");
  if (typeof template === "string") return differsFromText(template, answer, place, field);
  if (template === null || typeof template !== "object") return differsFromScalar(template, answer, place, field);
  if (Array.isArray(template)) return differsFromList(template, answer, place, field);
  if (answer === null || typeof answer !== "object" || Array.isArray(answer)) return [`${place} is not an object`];
  if (OF_THE_DRIVER.has(field)) return [];
  const expected = template as Readonly<Record<string, unknown>>;
  const given = answer as Readonly<Record<string, unknown>>;
  if (FREE_KEYS.has(field)) return differsFromFreeKeys(expected, given, place);
  const missing = Object.keys(expected).filter((key) => !(key in given));
  const extra = Object.keys(given).filter((key) => !(key in expected));
  return [
    ...missing.map((key) => `${place}.${key} is missing`),
    ...extra.map((key) => `${place}.${key} is not in the sample`),
    ...Object.keys(expected)
      .filter((key) => key in given)
      .flatMap((key) => differences(expected[key], given[key], `${place}.${key}`)),
  ];
}

function differsFromFreeKeys(
  expected: Readonly<Record<string, unknown>>,
  given: Readonly<Record<string, unknown>>,
  place: string,
): readonly string[] {
  const kinds = Object.values(expected);
  if (kinds.length === 0) return [];
  return Object.entries(given).flatMap(([key, value]) => closest(kinds, value, `${place}.${key}`));
}

function differsFromList(template: readonly unknown[], answer: unknown, place: string, field: string) {
  if (!Array.isArray(answer)) return [`${place} is not a list`];
  if (MAY_BE_EMPTY.has(field) && (template.length === 0 || answer.length === 0)) return [];
  if (template.length === 0) return answer.length === 0 ? [] : [`${place} is not empty`];
  if (answer.length === 0) return [`${place} is empty`];
  return answer.flatMap((item, index) => closest(template, item, `${place}[${index}]`));
}

/** The differences from the template's item that is most like the answer's. */
function closest(templates: readonly unknown[], item: unknown, place: string): readonly string[] {
  const found = templates.map((template) => differences(template, item, place));
  return found.reduce((best, one) => (one.length < best.length ? one : best));
}

function differsFromText(template: string, answer: unknown, place: string, field: string): readonly string[] {
  const shown = JSON.stringify(answer)?.slice(0, 80);
  const isVariable = /%\((any:|int:)?\w+\)s/.test(template);
  if (/^%\((any|int):\w+\)s$/.test(template))
    return answer === null || typeof answer !== "object" ? [] : [`${place} is ${shown}`];
  if (answer === null && NULLABLE.has(field)) return [];
  if (typeof answer !== "string") return [`${place} is ${shown} instead of a string like ${template.slice(0, 80)}`];
  const isAlike = isVariable
    ? patternOf(template.trim()).test(answer.trim())
    : isFreeText(field) || answer === template;
  return isAlike ? [] : [`${place} is ${shown} instead of ${template.slice(0, 80)}`];
}

function isFreeText(field: string): boolean {
  return !FIXED_VALUES.has(field);
}

function differsFromScalar(template: unknown, answer: unknown, place: string, field: string): readonly string[] {
  if ((template === null || answer === null) && NULLABLE.has(field)) return [];
  const isSameType = template === null ? answer === null : typeof template === typeof answer && answer !== null;
  const isAlike = FIXED_VALUES.has(field) ? Object.is(template, answer) : isSameType;
  return isAlike ? [] : [`${place} is ${JSON.stringify(answer)?.slice(0, 80)} instead of ${JSON.stringify(template)}`];
}

const UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";
/** The patterns of variables that have one shape wherever they are used. */
const PATTERNS: Readonly<Record<string, string>> = {
  uuid: UUID,
  id: UUID,
  isotime: "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ",
  strtime: "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{6}",
  ip: "\\d{1,3}(\\.\\d{1,3}){3}",
  request_id: `req-${UUID}`,
  reservation_id: "r-[0-9a-zA-Z]{8}",
  hostid: "[0-9a-f]*",
  int: "[0-9]+",
  fingerprint: "([0-9a-f]{2}:){15,19}[0-9a-f]{2}",
  keypair_type: "ssh|x509",
};

/** Of a query only the names of the parameters are looked for, in any order: upstream leaves out all but one of equal names. */
function patternOf(template: string): RegExp {
  const [path = "", query] = template.split("?");
  if (path.startsWith("http") || path.includes("_endpoint)s") || path.includes("%(host)s"))
    return new RegExp(`${pathPattern(path)}${query === undefined ? "" : parametersPattern(query)}$`);
  return new RegExp(`${pathPattern(template)}$`);
}

function parametersPattern(query: string): string {
  const names = query.split("&").map((parameter) => parameter.split("=")[0] ?? "");
  return `\\?${names.map((name) => `(?=(?:[^]*&)?${name}=)`).join("")}(?:[^&=]*=[^&]*(?:&|$)){${names.length},}`;
}

function pathPattern(template: string): string {
  const parts = template.split(/(%\(\w+\)s)/).map((part) => {
    const variable = /^%\((\w+)\)s$/.exec(part)?.[1];
    if (variable !== undefined) return `(?:${PATTERNS[variable] ?? "[^]*"})`;
    // Upstream's address of the cloud stands for ours, and its paths name a project.
    return part
      .replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
      .replace(/http:\/\/openstack\\\.example\\\.com(\/v2\\\.1)?/g, "[^]*")
      .replace(/\/[0-9a-f]{32}(?=\/)/g, "");
  });
  return `^${parts.join("")}`;
}

/**
 * Reads a template, whose variables may stand where numbers and truth values do. The values of the `differing` fields may be any numbers
 * and texts.
 */
export function parseTemplate(text: string, differing: readonly string[] = []): unknown {
  const json = text.replace(/(: *)%\((\w+)\)s/g, '$1"%(any:$2)s"');
  return JSON.parse(json, (key, value) => (differing.includes(key) ? "%(any:x)s" : value));
}
