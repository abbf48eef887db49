import fc from "../../rigs/property.ts";

/** A request as bytes and texts, valid or not. */
export interface RawRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
}

/** A verb of a path, with a request that is valid except for one fault. If it were carried out, it would change nothing. */
export interface FuzzedRoute {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  /** The path with its parameters filled in. The parts in braces may be made wrong. */
  readonly path: string;
  /** Valid query parameters. */
  readonly query?: Readonly<Record<string, string>>;
  /** A body that is refused only because of its generation or name. */
  readonly body?: unknown;
  /** Only these versions, where another one would accept a wrong request. */
  readonly versions?: readonly string[];
  /** The resource does not exist, so a request with a valid path would be carried out. The path is therefore always made wrong. */
  readonly takesEffect?: boolean;
}

const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: "grapheme" }),
  fc.constantFrom("", " ", "\u0000", "a\u0000b", "\ud800", "0", "-1", "null", "x".repeat(2_000), "__proto__"),
  fc.constantFrom(
    "constructor",
    "toString",
    "in:",
    "!",
    "!!",
    ",",
    ":",
    "VCPU",
    "VCPU:",
    "VCPU:1:2",
    "in:,",
    "%",
    "'\"\\",
  ),
);
const number = fc.oneof(
  fc.constantFrom(0, -1, -2, -3, 1.5, 2 ** 31 - 1, 2 ** 31, 2 ** 53, 2 ** 63, 1e300, -1e300, 5e-324),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
const deep = fc.integer({ min: 5, max: 3_000 }).map((levels) => {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = level % 2 === 0 ? [value] : { a: value };
  return value;
});
const junk = fc.oneof(
  text,
  number,
  fc.constantFrom(null, true, false, [], {}, [[]], [null]),
  fc.jsonValue({ maxDepth: 3 }),
  fc.array(text, { maxLength: 4 }),
  fc.dictionary(text, number, { maxKeys: 3 }),
  deep,
);

/** Replaces the `pick`-th value of the document, counting the root as one. */
function planted(document: unknown, pick: number, change: (value: unknown) => unknown): unknown {
  const places: (readonly (string | number)[])[] = [];
  const walk = (value: unknown, place: readonly (string | number)[]): void => {
    places.push(place);
    if (typeof value === "object" && value !== null)
      for (const key of Object.keys(value)) walk((value as Record<string, unknown>)[key], [...place, key]);
  };
  walk(document, []);
  const place = places[pick % places.length]!;
  const replace = (value: unknown, [key, ...rest]: readonly (string | number)[]): unknown => {
    if (key === undefined) return change(value);
    if (Array.isArray(value)) return value.map((one, at) => (String(at) === key ? replace(one, rest) : one));
    const record = value as Record<string, unknown>;
    return { ...record, [key]: replace(record[key], rest) };
  };
  return replace(document, place);
}

/** The body with one fault in it, or bytes that are not JSON. */
function wrongBody(right: unknown): fc.Arbitrary<string | Uint8Array | null> {
  const place = fc.nat({ max: 200 });
  const encode = (value: unknown): string => JSON.stringify(value) ?? "";
  return fc.oneof(
    { weight: 5, arbitrary: fc.tuple(place, junk).map(([at, value]) => encode(planted(right, at, () => value))) },
    {
      weight: 2,
      arbitrary: fc
        .tuple(place, text, junk)
        .map(([at, key, value]) =>
          encode(planted(right, at, (old) => (typeof old === "object" ? { ...old, [key]: value } : [old]))),
        ),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(place, fc.nat()).map(([at, drop]) =>
        encode(
          planted(right, at, (old) => {
            if (typeof old !== "object" || old === null) return undefined;
            const keys = Object.keys(old);
            return Object.fromEntries(Object.entries(old).filter(([key]) => key !== keys[drop % keys.length]));
          }),
        ),
      ),
    },
    { weight: 1, arbitrary: fc.tuple(place, text).map(([at, cut]) => encode(right).slice(0, at) + cut) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 60 }) },
    { weight: 1, arbitrary: fc.constantFrom(null, "", "{", "[[", "[".repeat(100_000), `{"a":`.repeat(20_000)) },
  );
}

const encoded = (value: string): string => {
  try {
    return encodeURIComponent(value);
  } catch {
    return "%ff%fe";
  }
};
const queryText = fc.oneof(
  { weight: 6, arbitrary: text.filter((value) => value.isWellFormed()).map(encoded) },
  {
    weight: 6,
    arbitrary: fc.constantFrom("VCPU:1", "VCPU:99999999999999999999", "MEMORY_MB:-1", "CUSTOM_GOLD:0", "A:1,B"),
  },
  {
    weight: 6,
    arbitrary: fc.constantFrom("CUSTOM_SHINY", "!CUSTOM_SHINY", "in:CUSTOM_SHINY", "in:!A", "!!A", "A,,B", "none"),
  },
  {
    weight: 4,
    arbitrary: fc.tuple(fc.constantFrom("", "!", "in:", "!in:"), fc.uuid()).map(([sign, uuid]) => sign + uuid),
  },
  { weight: 1, arbitrary: fc.constantFrom("%", "%zz", "%00", "%ff", "&&", "=", "+") },
);
const KEYS = [
  ...["name", "uuid", "member_of", "resources", "required", "in_tree", "limit", "group_policy", "root_required"],
  ...["same_subtree", "associated", "project_id", "user_id", "consumer_type", "resources1", "required1", "member_of1"],
  ...["in_tree1", "resources_a", "required_a", "limit1", "resources0"],
];

function wrongQuery(right: Readonly<Record<string, string>>): fc.Arbitrary<string> {
  const key = fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...Object.keys(right), KEYS[0]!) },
    { weight: 2, arbitrary: fc.constantFrom(...KEYS) },
    { weight: 1, arbitrary: queryText },
  );
  const added = fc.tuple(key, queryText);
  const start = Object.entries(right).map(([key, value]) => `${key}=${value}`);
  return fc
    .tuple(fc.subarray(start), fc.array(added, { minLength: 1, maxLength: 4 }))
    .map(([kept, more]) => [...kept, ...more.map(([key, value]) => `${key}=${value}`)].join("&"));
}

/** Never a valid segment, since names that a request could create start with CUSTOM_. */
const wrongSegment = fc.oneof(
  text.filter((value) => value !== "" && !value.startsWith("CUSTOM_")).map(encoded),
  fc.constantFrom(
    "%",
    "%zz",
    "%ff",
    "%00",
    "a/b",
    "..",
    ".",
    "%2e%2e",
    "%2f",
    "CUSTOM_lower",
    "custom",
    "x".repeat(900),
  ),
  fc.uuid(),
  fc.uuid().map((uuid) => `${uuid}0`),
);

const headerText = fc.stringMatching(/^[\x20-\x7e\x80-\xff]{0,80}$/).map((value) => value.trim());
const wrongHeaders = fc.dictionary(
  fc.constantFrom(
    "accept",
    "x-openstack-request-id",
    "x-project-id",
    "x-roles",
    "x-berth-staleness-ms",
    "x-berth-cell",
  ),
  fc.oneof(headerText, fc.constantFrom("*/*", "text/html", "application/json;q=0", "cell9")),
  { maxKeys: 2, size: "xsmall" },
);
const rightVersion = fc.oneof(
  fc.constant("placement 1.39"),
  fc.integer({ min: 0, max: 39 }).map((minor) => `placement 1.${minor}`),
);
const wrongVersion = fc.oneof(
  fc.constantFrom(
    "placement latest",
    "placement",
    "placement 2.0",
    "placement 1.40",
    "compute 2.1",
    ",,,",
    "placement 1.x",
  ),
  headerText,
);

const filled = (path: string): string => path.replaceAll(/[{}]/g, "");

/** Requests to this route, each with a fault or without an effect. */
export function malformedRequests(route: FuzzedRoute): fc.Arbitrary<RawRequest> {
  const { method, path, body, query = {}, versions } = route;
  const version =
    versions === undefined
      ? fc.oneof({ weight: 15, arbitrary: rightVersion }, { weight: 1, arbitrary: wrongVersion })
      : fc.constantFrom(...versions.map((one) => `placement ${one}`));
  const segments = path.match(/\{[^}]*\}/g) ?? [];
  const broken = fc
    .tuple(fc.nat(), wrongSegment)
    .map(([pick, wrong]) => filled(path.replace(segments[pick % segments.length]!, () => wrong)));
  const base = fc.record({
    headers: wrongHeaders,
    version,
    type: fc.oneof(
      { weight: 15, arbitrary: fc.constant("application/json") },
      { weight: 1, arbitrary: fc.constantFrom("text/plain", "", "application/JSON; x") },
    ),
  });
  const request = (
    { headers, version: asked, type }: { headers: Record<string, string>; version: string; type: string },
    rest: { path: string; body: RawRequest["body"] },
  ): RawRequest => ({
    method,
    path: rest.path,
    body: rest.body,
    headers: {
      "x-auth-token": "admin",
      "openstack-api-version": asked,
      ...(type === "" ? {} : { "content-type": type }),
      ...headers,
    },
  });
  const rightBody = body === undefined ? null : JSON.stringify(body);
  const wrongPath = fc.tuple(base, broken).map(([head, to]) => request(head, { path: to, body: rightBody }));
  const withQuery = fc
    .tuple(base, wrongQuery(query))
    .map(([head, asked]) => request(head, { path: `${filled(path)}?${asked}`, body: rightBody }));
  const withBody = fc
    .tuple(base, wrongBody(body ?? {}))
    .map(([head, wrong]) => request(head, { path: filled(path), body: wrong }));
  return fc.oneof(
    ...(path.includes("{") ? [{ weight: 2, arbitrary: wrongPath }] : []),
    ...(route.takesEffect ? [] : [{ weight: method === "GET" ? 6 : 1, arbitrary: withQuery }]),
    ...(route.takesEffect ? [] : [{ weight: body === undefined ? 1 : 6, arbitrary: withBody }]),
  );
}
