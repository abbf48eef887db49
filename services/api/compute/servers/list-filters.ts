import { isIPv4, isIPv6 } from "node:net";
import type { TimeRange } from "../../../../core/stores/api/api-store.ts";
import type { AttributeValueAsked } from "../../../../core/stores/cell/listed-servers.ts";
import { SERVER_STATUSES } from "../../../../core/tasks/server.ts";
import type { KnownServer } from "../../cells/hydrate-servers.ts";
import { type KnownCall, mayDo } from "../../http/call.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import { badRequest, Fault, invalidQuery } from "../../http/fault.ts";
import type { QueryReader } from "../../http/query-reader.ts";
import { readFlag } from "../../http/schema.ts";
import type { HostZones } from "../aggregates/host-zones.ts";
import { ROOT_DEVICE } from "../server-volumes/root-device.ts";
import { isAtRest, isServedByIndex, STATUSES_WITH_TASKS } from "./list-by-state.ts";
import { isOfValue, type TokenSource, tokenSourceOf } from "./list-by-tokens.ts";
import { type ListPattern, readPattern } from "./list-pattern.ts";
import { MatchWork } from "./match-work.ts";
import { requestDigitsOf } from "./reservation-id.ts";
import { SERVER_ATTRIBUTES, type ServerAttribute } from "./server-attributes.ts";
import { shownStatus, statusesInPowerState, statusesInVmState } from "./shown-state.ts";
import { timeRangeOf } from "./time-range.ts";

type Matches = (known: KnownServer) => boolean;

/** Servers that are found by an index: only these are looked at. */
export type ListSource =
  | { readonly kind: "uuid"; readonly uuid: string | null }
  | { readonly kind: "host"; readonly host: string }
  | { readonly kind: "tags"; readonly all: readonly string[]; readonly any: readonly string[] }
  | { readonly kind: "locked" }
  | { readonly kind: "states"; readonly shown: ReadonlySet<string> }
  /** Servers on the hosts whose names contain the text. */
  | { readonly kind: "nodes"; readonly contains: string }
  | TokenSource
  /** No listed server passes the filters. */
  | { readonly kind: "none" };

/** The filter whose servers the cells' indexes find. */
export interface IndexedFilter extends AttributeValueAsked {
  /** The value is only a part of the values that pass. */
  readonly isPart: boolean;
}

type Zones = Pick<HostZones, "of" | "byHost" | "defaultZone">;

/** The parameters that can ask for deleted servers alone. */
export type DeletedBy = "deleted" | "status" | "vm_state";

export interface ListFilters {
  readonly matchers: readonly Matches[];
  readonly name: ListPattern | null;
  /** Where indexes find servers, the source first that is likely to find the fewest. Empty when no index serves the filters. */
  readonly sources: readonly ListSource[];
  readonly indexed: readonly IndexedFilter[];
  /** The time in which all servers were created that pass. */
  readonly created: TimeRange | null;
  readonly deleted: DeletedBy | null;
  readonly softDeleted: boolean;
  /** Returns a promise to wait for when the matchers have worked for some milliseconds, otherwise null. */
  readonly rest: () => Promise<void> | null;
}

/** Filters that callers who are not admins may use, by their first microversion. Source: Nova's `_get_server_search_options`. */
const FOR_EVERYBODY: Readonly<Record<string, number>> = {
  ...{ reservation_id: 1, name: 1, status: 1, image: 1, flavor: 1, ip: 1, "changes-since": 1, all_tenants: 1 },
  ...{ ip6: 5, tags: 26, "tags-any": 26, "not-tags": 26, "not-tags-any": 26, "changes-before": 66, locked: 73 },
  ...{ availability_zone: 83, config_drive: 83, key_name: 83, created_at: 83, launched_at: 83, terminated_at: 83 },
  ...{ power_state: 83, task_state: 83, vm_state: 83, progress: 83, user_id: 83, hostname: 90 },
};
const ALIASES: Readonly<Record<string, ServerAttribute>> = {
  image: "image_ref",
  flavor: "instance_type_id",
  description: "display_description",
};
/** Filters whose value must be equal. The others are regular expressions, as in Nova. */
const EXACT: readonly string[] = [
  ...["user_id", "image", "image_ref", "flavor", "instance_type_id", "vm_state", "task_state", "uuid", "host"],
  ...["launch_index", "power_state", "progress", "auto_disk_config", "reservation_id"],
];
const PATTERNS: readonly string[] = [
  ...["kernel_id", "ramdisk_id", "hostname", "key_name", "node", "launched_at", "terminated_at", "created_at"],
  ...["updated_at", "availability_zone", "description", "display_description", "locked_by", "root_device_name"],
  ...["access_ip_v4", "access_ip_v6"],
];
const STATUSES: ReadonlySet<string> = new Set([
  ...[...SERVER_STATUSES, "UNKNOWN", "RESIZE", "REBUILD", "REBOOT", "HARD_REBOOT", "MIGRATING", "REVERT_RESIZE"],
]);
const STRICT_STATUS_FROM_MINOR = 38;
/** A zone of more hosts is likely to have many of the servers, so that a walk through the list finds them soon. */
const ZONE_HOSTS_MAX = 300;

/**
 * Reads the filters of a list. As in Nova, a filter that is reserved, by default for admins, is ignored when another caller sends it.
 *
 * Source: Nova's `ServersController._get_servers` and its schema `index_query`.
 */
export function readFilters(query: QueryReader, call: KnownCall, zones: Zones): ListFilters {
  const seesAll = mayDo(call, "servers:allow_all_filters");
  const text = (name: string): string | undefined => {
    const from = FOR_EVERYBODY[name] ?? Number.POSITIVE_INFINITY;
    return seesAll || call.minor >= from ? query.text(name) : undefined;
  };
  const name = text("name") ?? text("display_name") ?? "";
  const tags = readTags(text);
  const status = readStatuses(query, call);
  const locked = readBoolean("locked", call.minor >= 73 ? text("locked") : undefined);
  const isDeletedAsked = text("vm_state") === "deleted";
  if (isDeletedAsked) requireMayListDeleted(call);
  const uuid = text("uuid");
  const host = text("host");
  const drive = readConfigDrive(text);
  const tokens = tokenSourceOf(text, drive ?? undefined);
  const states = statesOf(status.statuses, text);
  const restingStates = isAtRest(states) ? indexedStates(states) : null;
  const work = new MatchWork();
  const matchers = [...readMatchers(text, zones, work), ...tags.matchers, ...status.matchers];
  if (locked !== undefined) matchers.push((known) => (known.lock !== null) === locked);
  return {
    matchers,
    rest: () => work.rest(),
    name: name === "" ? null : readPattern("name", name, work),
    indexed: [
      ...indexedOf(text),
      ...[restingStates, indexedZone(text("availability_zone"), zones, work)].filter((filter) => filter !== null),
    ],
    created: timeRangeOf(readPattern("created_at", text("created_at") ?? "").contains),
    sources: [
      ...(drive === null ? [NO_SERVER] : []),
      sourceOf({ uuid, host, tags, locked: locked ?? (text("locked_by") === undefined ? undefined : true) }),
      sourceOfRest(text),
      tokens !== null && isOfValue(tokens) ? tokens : null,
      // Servers at rest are found by their status in the order of the list. Only if few have the status, it is better than the field.
      restingStates === null || tokens !== null ? sourceOfStates(states) : null,
      tokens !== null && !isOfValue(tokens) ? tokens : null,
    ].filter((source) => source !== null),
    deleted: status.deleted
      ? "status"
      : isDeletedAsked
        ? "vm_state"
        : readBoolean("deleted", text("deleted"))
          ? "deleted"
          : null,
    softDeleted: readFlag(text("soft_deleted") ?? "") === true,
  };
}

function sourceOf(found: {
  readonly uuid: string | undefined;
  readonly host: string | undefined;
  readonly tags: ReturnType<typeof readTags>;
  readonly locked: boolean | undefined;
}): ListSource | null {
  const { uuid, host, tags, locked } = found;
  if (uuid !== undefined) return { kind: "uuid", uuid: canonicalUuid(uuid) };
  if (host !== undefined) return { kind: "host", host };
  if (tags.all.length + tags.any.length > 0) return { kind: "tags", all: tags.all, any: tags.any };
  if (locked === true) return { kind: "locked" };
  return null;
}

const sourceOfStates = (shown: ReadonlySet<string>): ListSource | null =>
  isServedByIndex(shown) ? { kind: "states", shown } : null;

/** The filters by the host under its other name, by attributes that have the same value for all listed servers, and by a value that none can have. */
function sourceOfRest(text: (name: string) => string | undefined): ListSource | null {
  if (text("terminated_at") !== undefined || (text("progress") ?? "0") !== "0") return { kind: "none" };
  const reservation = text("reservation_id");
  if (reservation !== undefined && requestDigitsOf(reservation) === null) return { kind: "none" };
  const device = text("root_device_name");
  if (device !== undefined && !readPattern("root_device_name", device).matches(ROOT_DEVICE)) return { kind: "none" };
  const node = text("node");
  if (node === undefined) return null;
  const { contains, isWhole } = readPattern("node", node);
  if (contains === "") return null;
  return isWhole ? { kind: "host", host: contains } : { kind: "nodes", contains };
}

/** The servers on the hosts of the zones, and those on no host. Null when the hosts are not known by name, or too many. */
function indexedZone(asked: string | undefined, { byHost, defaultZone }: Zones, work: MatchWork): IndexedFilter | null {
  if (asked === undefined) return null;
  const pattern = readPattern("availability_zone", asked, work);
  if (pattern.matches(defaultZone)) return null;
  const passing = new Set([...new Set(byHost.values())].filter((zone) => pattern.matches(zone)));
  const hosts: string[] = [];
  for (const [host, zone] of byHost) {
    if (!passing.has(zone)) continue;
    if (hosts.push(host) > ZONE_HOSTS_MAX) return null;
  }
  const [value = "", ...otherValues] = hosts;
  return { attribute: "host", value, otherValues, orNone: true, isPart: false };
}

function indexedStates(shown: ReadonlySet<string>): IndexedFilter | null {
  const [value, ...otherValues] = SERVER_STATUSES.filter((status) => shown.has(status));
  return value === undefined ? null : { attribute: "status", value, otherValues, isPart: false };
}

/** The statuses among which the servers are looked for: those with the task state asked for, or else with the status, the state or the power state. */
function statesOf(statuses: ReadonlySet<string>, text: (name: string) => string | undefined): ReadonlySet<string> {
  // Few servers have a task, whatever their status is.
  if (text("task_state") !== undefined) return STATUSES_WITH_TASKS;
  if (statuses.size > 0) return statuses;
  const [vmState, power] = [text("vm_state"), text("power_state")];
  if (vmState !== undefined) return new Set(statusesInVmState(vmState));
  return new Set(power === undefined ? [] : statusesInPowerState(power));
}

/** The filters that the cells' indexes serve. */
function* indexedOf(text: (name: string) => string | undefined): Generator<IndexedFilter> {
  const asked = [
    // Servers without an image have no entry in its index.
    { attribute: "image", value: text("image") ?? text("image_ref") },
    { attribute: "reservation", value: requestDigitsOf(text("reservation_id") ?? "") },
    { attribute: "user", value: text("user_id") },
    { attribute: "flavor", value: text("flavor") ?? text("instance_type_id") },
  ] as const;
  for (const { attribute, value } of asked) if (value) yield { attribute, value, isPart: false };
  const key = text("key_name");
  const pattern = key === undefined ? null : readPattern("key_name", key);
  if (pattern !== null && pattern.contains !== "")
    yield { attribute: "key", value: pattern.contains, isPart: !pattern.isWhole };
}

function* readMatchers(text: (name: string) => string | undefined, zones: Zones, work: MatchWork): Generator<Matches> {
  for (const name of EXACT) {
    const value = text(name);
    if (value === undefined) continue;
    const wanted = name === "uuid" ? (canonicalUuid(value) ?? value) : value;
    const read = SERVER_ATTRIBUTES[ALIASES[name] ?? (name as ServerAttribute)];
    yield (known) => {
      const own = read(known, zones);
      return own !== null && String(own) === wanted;
    };
  }
  for (const name of PATTERNS) {
    const value = text(name);
    if (value === undefined) continue;
    const pattern = readPattern(name, value, work);
    const read = SERVER_ATTRIBUTES[ALIASES[name] ?? (name as ServerAttribute)];
    yield (known) => {
      const own = read(known, zones);
      return own !== null && pattern.matches(String(own));
    };
  }
  const drive = readConfigDrive(text);
  if (drive !== undefined) yield ({ server }) => server.spec.configDrive === drive;
  for (const [name, isOfVersion] of [["ip", isIPv4] as const, ["ip6", isIPv6] as const]) {
    const value = text(name);
    if (value === undefined) continue;
    // As in Neutron's search for a part of an address, the point of an address is no wildcard.
    const pattern = readPattern(name, /^\^?[\d.]+\$?$/.test(value) ? value.replaceAll(".", "\\.") : value, work);
    const matches = (address: string) => isOfVersion(address) && pattern.matches(address);
    yield ({ server }) => server.spec.ports.some(({ addresses }) => addresses.some(matches));
  }
}

/** The source of lists that no server can be in. */
const NO_SERVER: ListSource = { kind: "uuid", uuid: null };

/** Nova takes the value for a pattern of what it has stored, so one that is neither true nor false, for which this returns null, matches no server. */
function readConfigDrive(text: (name: string) => string | undefined): boolean | null | undefined {
  const value = text("config_drive");
  if (value === undefined) return undefined;
  if (value === "") throw invalidQuery("config_drive", value, "'' is not a 'regex'");
  return readFlag(value);
}

function readTags(text: (name: string) => string | undefined) {
  const list = (name: string) => {
    if (text(name) === "") throw invalidQuery(name, "", "'' is not a 'regex'");
    return text(name)?.split(",") ?? [];
  };
  const [all, any, notAll, notAny] = [list("tags"), list("tags-any"), list("not-tags"), list("not-tags-any")];
  const has =
    (tag: string) =>
    ({ server }: KnownServer) =>
      server.spec.tags.includes(tag);
  const matchers: Matches[] = all.map(has);
  if (any.length > 0) matchers.push((known) => any.some((tag) => has(tag)(known)));
  if (notAll.length > 0) matchers.push((known) => !notAll.every((tag) => has(tag)(known)));
  if (notAny.length > 0) matchers.push((known) => !notAny.some((tag) => has(tag)(known)));
  return { all, any, matchers };
}

/** Reads the status filter. Unknown statuses match nothing; from microversion 2.38 on, a query with only unknown statuses is refused. */
function readStatuses(
  query: QueryReader,
  call: KnownCall,
): { readonly matchers: Matches[]; readonly deleted: boolean; readonly statuses: ReadonlySet<string> } {
  const asked = query.all("status").map((status) => status.toUpperCase());
  if (asked.length === 0) return { matchers: [], deleted: false, statuses: new Set() };
  const statuses = new Set(asked.filter((status) => STATUSES.has(status)));
  if (statuses.size === 0 && call.minor >= STRICT_STATUS_FROM_MINOR) throw badRequest("Invalid status value");
  const deleted = statuses.size === 1 && statuses.has("DELETED");
  if (deleted) requireMayListDeleted(call);
  return { matchers: [(known) => statuses.has(shownStatus(known))], deleted, statuses };
}

function requireMayListDeleted({ identity }: KnownCall): void {
  if (!identity.isAdmin) throw new Fault(403, "Only administrators may list deleted instances");
}

function readBoolean(name: string, value: string | undefined): boolean | undefined {
  if (value === undefined) return undefined;
  const flag = readFlag(value);
  // Nova takes a `deleted` that it does not understand for false.
  if (flag === null && name === "deleted") return false;
  if (flag === null) throw invalidQuery(name, value, "It is neither true nor false.");
  return flag;
}
