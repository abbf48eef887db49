import type { RequestOrder, RequestQuery, RequestRecord } from "../../../../core/stores/api/api-store.ts";
import { type ListPosition, newestFirst } from "../../../../core/stores/cell/listed-servers.ts";
import type { KnownServer } from "../../cells/hydrate-servers.ts";
import type { KnownCall } from "../../http/call.ts";
import { badRequest, Fault, invalidQuery } from "../../http/fault.ts";
import type { QueryReader } from "../../http/query-reader.ts";
import type { HostZones } from "../aggregates/host-zones.ts";
import { type AttributeValue, SERVER_ATTRIBUTES, type ServerAttribute, sortValueOf } from "./server-attributes.ts";

interface SortKey {
  readonly key: ServerAttribute;
  readonly descending: boolean;
}

/** The order of a list. Null is the default: newest first. */
export type ListOrder = readonly SortKey[] | null;

const LOCKED_FROM_MINOR = 73;
const STRICT_FROM_MINOR = 75;

/** Columns of Nova's database that sort nothing. From 2.75 on they are refused. Source: Nova's `SERVER_LIST_IGNORE_SORT_KEY`. */
const IGNORED: ReadonlySet<string> = new Set([
  ...["architecture", "cell_name", "cleaned", "default_ephemeral_device", "default_swap_device", "deleted"],
  ...["deleted_at", "disable_terminate", "ephemeral_gb", "ephemeral_key_uuid", "id", "key_data", "launched_on"],
  ...["memory_mb", "os_type", "reservation_id", "root_gb", "shutdown_terminate", "user_data", "vcpus", "vm_mode"],
]);
const FOR_ADMINS: ReadonlySet<string> = new Set(["host", "node"]);

/** Reads the sort keys and directions. Refuses unknown ones, and hosts for callers who are not admins. */
export function readOrder(query: QueryReader, call: KnownCall): ListOrder {
  const directions = query.all("sort_dir").map((text) => text.trim());
  for (const direction of directions) {
    if (direction !== "asc" && direction !== "desc")
      throw badRequest("Invalid input received: Unknown sort direction, must be 'desc' or 'asc'");
  }
  const asked = query.all("sort_key").map((key) => key.trim());
  const keys = asked.length === 0 ? ["created_at"] : asked;
  if (directions.length > keys.length) throw badRequest("Sort direction size exceeds sort key size");
  const sorts: SortKey[] = [];
  for (const [at, key] of keys.entries()) {
    const known = knownKey(key, call);
    const direction = directions[at] ?? directions[0] ?? "desc";
    if (known !== null) sorts.push({ key: known, descending: direction === "desc" });
  }
  const [first, ...others] = sorts;
  return first === undefined || (others.length === 0 && first.key === "created_at" && first.descending) ? null : sorts;
}

/** Whether the order is that of the creation of servers, in either direction. */
export function isByCreation(order: RequestOrder | null): order is "newest-first" | "oldest-first" {
  return order === "newest-first" || order === "oldest-first";
}

/**
 * Returns where the part of a list begins that follows this request, or the whole list for null. In the order of creation the request's place is enough, so that the
 * database does not read the request again.
 */
export function startAfter(
  last: RequestRecord | null,
  order: RequestOrder,
): Required<Pick<RequestQuery, "marker" | "after">> {
  if (last === null || !isByCreation(order)) return { marker: last?.serverUuid ?? null, after: null };
  return { marker: null, after: listPlaceOf(last) };
}

/** Returns the place of a request in a list by creation. */
export const listPlaceOf = ({ serverUuid, createdAtMs }: RequestRecord): ListPosition => ({
  uuid: serverUuid,
  createdAtMs,
});

/** Returns the order of the database's list that is equal to this one, or null when no index has this order. */
export function storedOrderOf(order: ListOrder): RequestOrder | null {
  if (order === null) return "newest-first";
  const [first, ...others] = order;
  if (first === undefined || others.length > 0) return null;
  if (first.key === "created_at") return first.descending ? "newest-first" : "oldest-first";
  if (first.key !== "display_name") return null;
  return first.descending ? "by-name-backwards" : "by-name";
}

/** Returns null for a key that sorts nothing. */
function knownKey(key: string, { minor, identity }: KnownCall): ServerAttribute | null {
  const ignored = IGNORED.has(key) || (key === "locked" && minor < LOCKED_FROM_MINOR);
  if (ignored && minor < STRICT_FROM_MINOR) return null;
  if (ignored || !isAttribute(key)) throw invalidQuery("sort_key", key, `'${key.slice(0, 50)}' is not a sort key.`);
  if (FOR_ADMINS.has(key) && !identity.isAdmin) throw new Fault(403, `Only administrators can sort servers by ${key}`);
  return key;
}

const isAttribute = (key: string): key is ServerAttribute => Object.hasOwn(SERVER_ATTRIBUTES, key);

/** Sorts servers, and leaves out those that do not follow a server of the list, unless it is null. */
export type SortServers = (servers: readonly KnownServer[], after: KnownServer | null) => readonly KnownServer[];

/** Returns what sorts servers in an order. Servers that are alike in it are newest first, then by uuid. */
export function sorterIn(order: ListOrder, zones: Pick<HostZones, "of">): SortServers {
  const keys = order ?? [];
  // Each value is read once, and not for each comparison.
  const placeOf = (known: KnownServer): SortedPlace => ({
    known,
    values: keys.map(({ key }) => sortValueOf(key, known, zones)),
  });
  const compare = (one: SortedPlace, other: SortedPlace): number => {
    for (let at = 0; at < keys.length; at += 1) {
      const way = compareValues(one.values[at]!, other.values[at]!);
      if (way !== 0) return keys[at]!.descending ? -way : way;
    }
    return newestFirst(one.known.server, other.known.server);
  };
  return (servers, after) => {
    const start = after && placeOf(after);
    return servers
      .map(placeOf)
      .filter((place) => start === null || compare(start, place) < 0)
      .sort(compare)
      .map(({ known }) => known);
  };
}

interface SortedPlace {
  readonly known: KnownServer;
  readonly values: readonly AttributeValue[];
}

/** A value that is not there comes first. */
function compareValues(one: AttributeValue, other: AttributeValue): number {
  if (one === other) return 0;
  if (one === null || other === null) return one === null ? -1 : 1;
  return one < other ? -1 : 1;
}
