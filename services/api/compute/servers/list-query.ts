import type { TimeRange } from "../../../../core/stores/api/api-store.ts";
import type { KnownServer } from "../../cells/hydrate-servers.ts";
import type { KnownCall } from "../../http/call.ts";
import { requireRule } from "../../http/call.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import { badRequest } from "../../http/fault.ts";
import { type QueryParameters, QueryReader } from "../../http/query-reader.ts";
import type { HostZones } from "../aggregates/host-zones.ts";
import { type DeletedBy, type IndexedFilter, type ListSource, readFilters } from "./list-filters.ts";
import { type ListOrder, readOrder, type SortServers, sorterIn } from "./list-order.ts";

/** A list of servers as it was asked for. */
export interface ListQuery {
  /** Null for the servers of all projects. */
  readonly projectId: string | null;
  readonly limit: number;
  readonly marker: string | null;
  /** Text in the names of all servers of the list, which the API database looks for. */
  readonly nameContains: string | null;
  readonly changedSinceMs: number | null;
  readonly changedBeforeMs: number | null;
  /**
   * The parameter by which only deleted servers are listed. When it is null, a deleted server is listed only when the query asks for changes in a
   * time.
   */
  readonly deleted: DeletedBy | null;
  /** Servers that are deleted softly are listed, too. */
  readonly softDeleted: boolean;
  /** Where indexes find servers, the best source first. */
  readonly sources: readonly ListSource[];
  /** The filters whose servers the cells' indexes find. */
  readonly indexed: readonly IndexedFilter[];
  /** All servers of the list were created in this time. Null when the query does not say when. */
  readonly created: TimeRange | null;
  readonly order: ListOrder;
  /** Sorts servers in the order. */
  readonly sort: SortServers;
  /** Filters that need the cells' data. When it is null there are none, so a page of requests is a page of servers. */
  readonly matches: ((known: KnownServer) => boolean) | null;
  /** Returns a promise to wait for before the next server is compared, when the filters have worked for some milliseconds, otherwise null. */
  readonly rest?: () => Promise<void> | null;
}

const BEFORE_FROM_MINOR = 66;
const TAGS_FROM_MINOR = 26;
const LOCKED_FROM_MINOR = 73;

/** The query of both lists of servers: all parameters of Nova's schema `index_query`. */
export const SERVER_QUERY: QueryParameters = {
  ...{ limit: 1, marker: 1, sort_key: 1, sort_dir: 1, all_tenants: 1, project_id: 1, tenant_id: 1 },
  ...{ user_id: 1, launch_index: 1, image_ref: 1, image: 1, kernel_id: 1, ramdisk_id: 1, hostname: 1 },
  ...{ key_name: 1, power_state: 1, vm_state: 1, task_state: 1, host: 1, node: 1, flavor: 1 },
  ...{ reservation_id: 1, launched_at: 1, terminated_at: 1, availability_zone: 1, name: 1, display_name: 1 },
  ...{ description: 1, display_description: 1, locked_by: 1, uuid: 1, root_device_name: 1, config_drive: 1 },
  ...{ access_ip_v4: 1, access_ip_v6: 1, auto_disk_config: 1, progress: 1, soft_deleted: 1, deleted: 1 },
  ...{ status: 1, "changes-since": 1, ip: 1, ip6: 1, created_at: 1 },
  ...{ tags: TAGS_FROM_MINOR, "tags-any": TAGS_FROM_MINOR },
  ...{ "not-tags": TAGS_FROM_MINOR, "not-tags-any": TAGS_FROM_MINOR },
  ...{ "changes-before": BEFORE_FROM_MINOR, locked: LOCKED_FROM_MINOR },
};

/** Reads the query of a list. Refuses values that it does not understand and, from microversion 2.75 on, unknown parameters. */
export function readListQuery(
  raw: Readonly<Record<string, string | readonly string[]>>,
  call: KnownCall,
  {
    pageMax,
    zones,
    isDetailed,
  }: {
    readonly pageMax: number;
    readonly zones: Pick<HostZones, "of" | "byHost" | "defaultZone">;
    readonly isDetailed: boolean;
  },
): ListQuery {
  const query = new QueryReader(raw);
  const filters = readFilters(query, call, zones);
  const order = readOrder(query, call);
  const { name } = filters;
  const matchers = [...filters.matchers];
  if (name !== null) matchers.push(({ server }) => name.matches(server.spec.name));
  const changedSinceMs = query.time("changes-since") ?? null;
  const changedBeforeMs = call.minor >= BEFORE_FROM_MINOR ? (query.time("changes-before") ?? null) : null;
  if (changedSinceMs !== null && changedBeforeMs !== null && changedBeforeMs < changedSinceMs)
    throw badRequest("The value of changes-since must be less than or equal to changes-before.");
  return {
    projectId: readProject(
      query,
      call,
      isDetailed ? "servers:detail:get_all_tenants" : "servers:index:get_all_tenants",
    ),
    limit: query.limit(pageMax),
    marker: readMarker(query),
    nameContains: name === null || name.contains === "" ? null : name.contains,
    ...{ changedSinceMs, changedBeforeMs, order },
    ...{ deleted: filters.deleted, softDeleted: filters.softDeleted },
    ...{ sources: filters.sources, indexed: filters.indexed, created: filters.created },
    sort: sorterIn(order, zones),
    matches: matchers.length === 0 ? null : (known) => matchers.every((matches) => matches(known)),
    rest: filters.rest,
  };
}

/** Reads the project. As in Nova, `project_id` has an effect only together with `all_tenants`. */
function readProject(query: QueryReader, call: KnownCall, rule: string): string | null {
  if (!query.flag("all_tenants")) return call.identity.projectId;
  requireRule(call, rule);
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
