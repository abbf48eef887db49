import { SERVER_STATUSES } from "../../../../core/tasks/server.ts";
import type { KnownServer } from "../../cells/hydrate-servers.ts";
import type { KnownCall } from "../../http/call.ts";
import { requireAdmin } from "../../http/call.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import { badRequest, invalidQuery } from "../../http/fault.ts";
import { QueryReader } from "../../http/query-reader.ts";
import { reservationIdOf } from "./server-view.ts";
import { shownStatus } from "./shown-state.ts";

/** A list of servers as it was asked for. */
export interface ListQuery {
  /** Null for the servers of all projects. */
  readonly projectId: string | null;
  readonly limit: number;
  readonly marker: string | null;
  readonly nameContains: string | null;
  readonly changedSinceMs: number | null;
  /** Filters that need the cells' data. When it is null there are none, so a page of requests is a page of servers. */
  readonly matches: ((known: KnownServer) => boolean) | null;
}

const KNOWN: ReadonlySet<string> = new Set([
  "limit",
  "marker",
  "status",
  "name",
  "host",
  "all_tenants",
  "changes-since",
  "sort_key",
  "sort_dir",
  "flavor",
  "image",
  "reservation_id",
  "project_id",
  "tenant_id",
  "user_id",
  "uuid",
  "deleted",
]);
const UNSUPPORTED: ReadonlySet<string> = new Set([
  "changes-before",
  "ip",
  "ip6",
  "tags",
  "tags-any",
  "not-tags",
  "not-tags-any",
  "vm_state",
  "task_state",
  "power_state",
  "locked",
  "access_ip_v4",
  "access_ip_v6",
  "availability_zone",
  "auto_disk_config",
  "config_drive",
  "created_at",
  "description",
  "display_name",
  "hostname",
  "image_ref",
  "instance_type_id",
  "kernel_id",
  "key_name",
  "launch_index",
  "launched_at",
  "locked_by",
  "node",
  "progress",
  "ramdisk_id",
  "root_device_name",
  "server_groups",
  "soft_deleted",
  "terminated_at",
  "updated_at",
  "user_data",
]);
const STATUSES: ReadonlySet<string> = new Set([...SERVER_STATUSES, "UNKNOWN"]);

/**
 * Reads the query of a list. Refuses what Berth cannot do rather than ignoring it: orders other than newest first, filters that Berth does
 * not support, and other projects for callers who are not admins.
 */
export function readListQuery(
  raw: Readonly<Record<string, string | readonly string[]>>,
  call: KnownCall,
  pageMax: number,
): ListQuery {
  const query = new QueryReader(raw);
  query.refuseOthers({ known: KNOWN, unsupported: UNSUPPORTED, minor: call.minor });
  refuseOtherOrders(query);
  if (query.flag("deleted"))
    throw invalidQuery("deleted", query.text("deleted"), "Use changes-since to see deleted servers.");
  const name = readName(query);
  const matchers = [...readMatchers(query, call), ...name.matchers];
  return {
    projectId: readProject(query, call),
    limit: query.limit(pageMax),
    marker: readMarker(query),
    nameContains: name.contains,
    changedSinceMs: query.time("changes-since") ?? null,
    matches: matchers.length === 0 ? null : (known) => matchers.every((matches) => matches(known)),
  };
}

function refuseOtherOrders(query: QueryReader): void {
  for (const key of query.all("sort_key")) {
    if (key !== "created_at") throw invalidQuery("sort_key", key, "Servers are listed by created_at only.");
  }
  for (const direction of query.all("sort_dir")) {
    if (direction !== "desc") throw invalidQuery("sort_dir", direction, "Servers are listed newest first (desc) only.");
  }
}

/** Reads the project. As in Nova, `project_id` has an effect only together with `all_tenants`. */
function readProject(query: QueryReader, call: KnownCall): string | null {
  if (!query.flag("all_tenants")) return call.identity.projectId;
  requireAdmin(call, "servers:index:get_all_tenants");
  return query.text("project_id") ?? query.text("tenant_id") ?? null;
}

function readMarker(query: QueryReader): string | null {
  const text = query.text("marker");
  if (text === undefined) return null;
  return canonicalUuid(text) ?? refuseMarker(text);
}

export function refuseMarker(marker: string): never {
  throw badRequest(`marker [${marker.slice(0, 100)}] not found`);
}

/** Reads the name filter. Nova takes a regular expression; here the text may occur anywhere in the name, and `^` and `$` anchor it. */
function readName(query: QueryReader): {
  readonly contains: string | null;
  readonly matchers: ((known: KnownServer) => boolean)[];
} {
  const text = query.text("name");
  if (text === undefined || text === "") return { contains: null, matchers: [] };
  if (/\p{Cc}/u.test(text)) throw invalidQuery("name", "", "It has control characters.");
  const atStart = text.startsWith("^");
  const atEnd = text.endsWith("$");
  const contains = text.slice(atStart ? 1 : 0, atEnd ? -1 : undefined);
  const matchers: ((known: KnownServer) => boolean)[] = [];
  if (atStart) matchers.push(({ server }) => server.spec.name.startsWith(contains));
  if (atEnd) matchers.push(({ server }) => server.spec.name.endsWith(contains));
  return { contains: contains === "" ? null : contains, matchers };
}

function* readMatchers(query: QueryReader, call: KnownCall): Generator<(known: KnownServer) => boolean> {
  const statuses = readStatuses(query, call);
  if (statuses !== null) yield (known) => statuses.has(shownStatus(known));
  const host = query.text("host");
  if (host !== undefined) {
    requireAdmin(call, "servers:index:host");
    yield ({ server }) => server.host === host;
  }
  const flavor = query.text("flavor");
  if (flavor !== undefined) yield ({ server }) => server.spec.flavor?.id === flavor;
  const image = query.text("image");
  if (image !== undefined) yield ({ server }) => server.spec.imageRef === image;
  const user = query.text("user_id");
  if (user !== undefined) yield ({ server }) => server.spec.userId === user;
  const uuid = query.text("uuid");
  if (uuid !== undefined) yield ({ server }) => server.uuid === canonicalUuid(uuid);
  const reservation = query.text("reservation_id");
  if (reservation !== undefined) yield ({ server }) => reservationIdOf(server.spec.requestId) === reservation;
}

/** Reads the status filter. Unknown statuses match nothing; from microversion 2.38 on, a query with only unknown statuses is refused. */
function readStatuses(query: QueryReader, call: KnownCall): ReadonlySet<string> | null {
  const asked = query.all("status").map((status) => status.toUpperCase());
  if (asked.length === 0) return null;
  const statuses = new Set(asked.filter((status) => STATUSES.has(status)));
  if (statuses.size === 0 && call.minor >= 38) throw badRequest("Invalid status value");
  return statuses;
}
