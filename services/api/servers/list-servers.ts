import type { RequestRecord } from "../../../core/cell/api-store.ts";
import type { KnownCall } from "../http/call.ts";
import { badRequest } from "../http/fault.ts";
import type { RequestsPort } from "../ports.ts";
import type { RequestFinder } from "./find-server.ts";
import { type Cells, hydrateServers, type KnownServer } from "./hydrate-servers.ts";
import { type ListQuery, refuseMarker } from "./list-query.ts";

export interface ListServersDeps {
  readonly store: Pick<RequestsPort, "listRequests">;
  readonly finder: RequestFinder;
  readonly cells: Cells;
}

export interface ServerPage {
  readonly servers: readonly KnownServer[];
  /** Where the next page starts; null: this is the last. */
  readonly nextMarker: string | null;
}

/** Requests that one call reads at most to fill a page through a filter; the next page goes on from there. */
const SCANNED_MAX = 10_000;
/** Changes of one cell that one call reads. */
const CHANGES_MAX = 10_000;

/** `GET /servers`: newest first. A filter that few servers pass may make a page shorter than its limit; it has a next one then. */
export async function listServers(deps: ListServersDeps, call: KnownCall, query: ListQuery): Promise<ServerPage> {
  const marker = query.marker === null ? null : await deps.finder.find(query.marker, call.identity);
  if (marker === null && query.marker !== null) refuseMarker(query.marker);
  if (query.limit === 0) return { servers: [], nextMarker: null };
  if (query.changedSinceMs === null) return listByCreation(deps, query);
  return listChanged(deps, query, { sinceMs: query.changedSinceMs, marker });
}

async function listByCreation(deps: ListServersDeps, query: ListQuery): Promise<ServerPage> {
  const { projectId, limit, nameContains, matches } = query;
  const servers: KnownServer[] = [];
  let marker = query.marker;
  for (let scanned = 0; scanned < SCANNED_MAX; ) {
    // Without a filter a page of requests is all but a page of servers; with one, many may fall through.
    const wanted = matches === null ? limit - servers.length : Math.max(limit, 200);
    const records = await deps.store.listRequests({
      projectId,
      marker,
      limit: wanted,
      ...(nameContains !== null && { nameContains }),
    });
    scanned += records.length;
    for (const known of await hydrateServers(records, deps.cells, { withDeleted: false })) {
      if (matches !== null && !matches(known)) continue;
      servers.push(known);
      if (servers.length === limit) return { servers, nextMarker: known.server.uuid };
    }
    marker = records.at(-1)?.serverUuid ?? marker;
    if (records.length < wanted) return { servers, nextMarker: null };
  }
  return { servers, nextMarker: marker };
}

/**
 * What has changed since, deleted servers included: the cells know of their servers, the API database of requests that are
 * in no cell. Newest first. Refuses a time so far back that a cell has more changes than one call reads.
 */
async function listChanged(
  deps: ListServersDeps,
  query: ListQuery,
  from: { readonly sinceMs: number; readonly marker: RequestRecord | null },
): Promise<ServerPage> {
  const { sinceMs, marker } = from;
  const [records, ...changes] = await Promise.all([
    deps.store.listRequests({ projectId: query.projectId, marker: null, limit: CHANGES_MAX, changedSinceMs: sinceMs }),
    ...Array.from(deps.cells.values(), (cell) => cell.serversChangedSince(sinceMs, CHANGES_MAX)),
  ]);
  const known = new Map<string, KnownServer>();
  for (const answer of changes) {
    if (answer.kind === "unreachable") continue;
    if (answer.value.length === CHANGES_MAX) refuseSoFarBack();
    for (const server of answer.value) known.set(server.uuid, { server, unreachable: false });
  }
  if (records.length === CHANGES_MAX) refuseSoFarBack();
  const others: RequestRecord[] = records.filter((record) => !known.has(record.serverUuid));
  for (const one of await hydrateServers(others, deps.cells, { withDeleted: true })) known.set(one.server.uuid, one);
  const wanted = [...known.values()]
    .filter((one) => isWanted(one, query))
    .map((one) => ({ known: one, place: placeInList(one.server) }));
  const rest = marker === null ? wanted : wanted.filter((one) => newestFirst(placeInList(marker), one.place) < 0);
  const servers = rest
    .sort((a, b) => newestFirst(a.place, b.place))
    .slice(0, query.limit)
    .map((one) => one.known);
  return { servers, nextMarker: servers.length < rest.length ? (servers.at(-1)?.server.uuid ?? null) : null };
}

function isWanted(known: KnownServer, query: ListQuery): boolean {
  const { spec } = known.server;
  return (
    (query.projectId === null || spec.projectId === query.projectId) &&
    (query.nameContains === null || spec.name.includes(query.nameContains)) &&
    (query.matches === null || query.matches(known))
  );
}

/** What orders a list, the same as in `ApiStore.listRequests`. */
interface PlaceInList {
  readonly createdAtMs: number;
  readonly uuid: string;
}

function placeInList(of: { readonly createdAtMs: number; readonly uuid: string } | RequestRecord): PlaceInList {
  return { createdAtMs: of.createdAtMs, uuid: "uuid" in of ? of.uuid : of.serverUuid };
}

function newestFirst(a: PlaceInList, b: PlaceInList): number {
  if (a.uuid === b.uuid) return 0;
  return b.createdAtMs - a.createdAtMs || (a.uuid < b.uuid ? -1 : 1);
}

function refuseSoFarBack(): never {
  throw badRequest(
    `Invalid input for query parameters changes-since: more than ${CHANGES_MAX} servers have changed since; name a later time.`,
  );
}
