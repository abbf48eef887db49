import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import { type Cells, hydrateServer, hydrateServers, type KnownServer } from "../../cells/hydrate-servers.ts";
import { badRequest, unavailable } from "../../http/fault.ts";
import type { RequestsPort } from "../../ports.ts";
import { findByState } from "./list-by-state.ts";
import type { ListSource } from "./list-filters.ts";
import { isOldestFirst } from "./list-order.ts";
import type { ListQuery } from "./list-query.ts";
import type { ServerPage } from "./server-page.ts";

/** Fewest servers about which cells are asked at a time. */
const CHUNK_MIN = 50;
/** Maximum number of servers that are sorted for one page. */
const SORTED_MAX = 10_000;

interface Deps {
  readonly store: Pick<RequestsPort, "requests" | "listRequests">;
  readonly cells: Cells;
}

/**
 * Lists servers that an index finds, and those of an order other than newest first: all of them are read, so that a page is full whenever
 * enough servers match. Returns null when very many servers have the statuses, because a scan of the list, from either of its ends, then finds them soon. Refuses an order
 * or any other filter that matches more servers than one call can sort.
 */
export async function listFound(
  deps: Deps,
  query: ListQuery,
  marker: RequestRecord | null,
): Promise<ServerPage | null> {
  const records = await recordsOf(deps, query);
  const isTooMany = records.length > SORTED_MAX;
  const isByCreation = query.order === null || isOldestFirst(query.order);
  if (isTooMany && query.source?.kind === "states" && isByCreation) return null;
  if (isTooMany)
    throw badRequest(`More than ${SORTED_MAX} servers would have to be sorted: use a filter that fewer servers match.`);
  if (query.order === null) return newestOf(deps.cells, records, query, marker);
  const known = await hydrateServers(records, deps.cells, { withDeleted: false });
  return pageOf(known, query, marker === null ? null : await hydrateServer(marker, deps.cells, { withDeleted: true }));
}

/** Returns the page that begins after the marker, newest first. Cells are asked about as many servers as fill it. */
async function newestOf(
  cells: Cells,
  records: readonly RequestRecord[],
  { limit, matches }: ListQuery,
  marker: RequestRecord | null,
): Promise<ServerPage> {
  const left = records.filter((record) => marker === null || newestFirst(marker, record) < 0).sort(newestFirst);
  const servers: KnownServer[] = [];
  for (let at = 0; at < left.length; ) {
    const chunk = left.slice(at, at + Math.max(CHUNK_MIN, limit + 1 - servers.length));
    at += chunk.length;
    for (const known of await hydrateServers(chunk, cells, { withDeleted: false })) {
      if (matches !== null && !matches(known)) continue;
      if (servers.length === limit) return { servers, nextMarker: servers.at(-1)?.server.uuid ?? null };
      servers.push(known);
    }
  }
  return { servers, nextMarker: null };
}

const newestFirst = (one: RequestRecord, other: RequestRecord): number =>
  other.createdAtMs - one.createdAtMs ||
  (one.serverUuid < other.serverUuid ? -1 : one.serverUuid > other.serverUuid ? 1 : 0);

/** Returns the page of these servers that begins after the marker. */
export function pageOf(servers: readonly KnownServer[], query: ListQuery, marker: KnownServer | null): ServerPage {
  const { compare, limit, matches } = query;
  const wanted = servers
    .filter((known) => matches === null || matches(known))
    .filter((known) => marker === null || compare(marker, known) < 0)
    .sort(compare);
  const page = wanted.slice(0, limit);
  return { servers: page, nextMarker: page.length < wanted.length ? (page.at(-1)?.server.uuid ?? null) : null };
}

async function recordsOf(
  deps: Deps,
  { projectId, source, nameContains }: ListQuery,
): Promise<readonly RequestRecord[]> {
  const ofProject = (record: RequestRecord) =>
    (projectId === null || record.spec.projectId === projectId) && isListed(record);
  if (source?.kind === "uuid" || source?.kind === "host") {
    const uuids =
      source.kind === "host" ? await uuidsOnHost(deps.cells, source) : source.uuid === null ? [] : [source.uuid];
    return (await deps.store.requests(uuids)).filter(ofProject);
  }
  if (source?.kind === "states") {
    const found = await findByState(deps, { projectId, shown: source.shown, limit: SORTED_MAX });
    return found.length > SORTED_MAX ? found : found.filter(ofProject);
  }
  return deps.store.listRequests({
    ...{ projectId, marker: null, limit: SORTED_MAX + 1 },
    ...(nameContains !== null && { nameContains }),
    ...(source?.kind === "tags" && { tags: source }),
    ...(source?.kind === "locked" && { locked: true }),
  });
}

const isListed = ({ state }: RequestRecord): boolean => state !== "deleted" && state !== "cancelled";

/** Returns the servers whose home is the host. Each cell answers by its index of hosts. */
async function uuidsOnHost(cells: Cells, { host }: ListSource & { readonly kind: "host" }): Promise<readonly string[]> {
  const answers = await Promise.all(
    Array.from(cells.values(), (cell) => cell.operations((store) => store.residents([host]))),
  );
  const found = answers.flatMap((answer) => (answer.kind === "answer" ? answer.value.flat() : []));
  if (found.length === 0 && answers.some(({ kind }) => kind === "unreachable"))
    throw unavailable(`A cell does not answer, and no other one has servers on host ${host.slice(0, 255)}.`);
  return found.map(({ serverUuid }) => serverUuid);
}
