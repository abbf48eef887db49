import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import { type ListPosition, newestFirst } from "../../../../core/stores/cell/listed-servers.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import { type Cells, hydrateServer, hydrateServers, type KnownServer, keyInCell } from "../../cells/hydrate-servers.ts";
import { badRequest, unavailable } from "../../http/fault.ts";
import type { RequestsPort } from "../../ports.ts";
import { findByState } from "./list-by-state.ts";
import { findByTokens } from "./list-by-tokens.ts";
import type { ListSource } from "./list-filters.ts";
import { isByCreation, listPlaceOf, storedOrderOf } from "./list-order.ts";
import type { ListQuery } from "./list-query.ts";
import { passing, passingServers } from "./passing-servers.ts";
import { stretchReader } from "./read-stretches.ts";
import type { ServerPage } from "./server-page.ts";
import { findSketched, type SketchedPlace } from "./sketched-servers.ts";
import { readSoftlyDeleted, type SoftlyDeletedDeps, softlyDeletedPlaces } from "./soft-deleted-stretches.ts";

/** Fewest servers about which cells are asked at a time. */
const CHUNK_MIN = 50;
/** Maximum number of servers that are sorted for one page. */
const SORTED_MAX = 10_000;
/** How many of them are read at a time. */
const SORTED_STRETCH = 2_000;

/** If very many servers pass the filters of these, a scan of the list finds some soon. Only some of the servers that they find may be of the project. */
const FOUND_BY_SCAN: ReadonlySet<ListSource["kind"]> = new Set(["states", "nodes", "tokens"]);
/** The servers of more hosts are found by a scan. */
const NODES_MAX = 300;

interface Deps extends SoftlyDeletedDeps {
  readonly store: Pick<RequestsPort, "requests" | "changesOf" | "listRequests" | "scanRequests" | "isRareName">;
}

/**
 * Lists servers that an index finds, and those of an order other than newest first: all of them are read, so that a page is full whenever
 * enough servers match. Returns null when very many servers are found or a cell does not answer, because a scan of the list, from either of its ends, then finds them soon. An order that no
 * scan has is then made of the whole list. Refuses an order or any other filter that matches more servers than one call can sort.
 */
export async function listFound(
  deps: Deps,
  query: ListQuery,
  marker: RequestRecord | null,
): Promise<ServerPage | null> {
  const places = await fewPlaces(deps, query);
  const order = storedOrderOf(query.order);
  const isScannable = query.softDeleted ? isByCreation(order) : order !== null;
  if (places === null && query.sources.length > 0 && isScannable) return null;
  if (query.order === null && places !== null && !query.softDeleted)
    return pageOfPlaces(deps, newestAfter(places, marker), query);
  if (places === null) {
    const page = await sketchedPage(deps, query, marker);
    if (page !== null) return page;
  }
  const listed =
    places === null
      ? ((await readAll(deps, query)) ?? refuseSorting())
      : await readPlaces(deps, places, query.projectId);
  const known = query.softDeleted ? [...listed, ...(await softlyDeletedOf(deps, query))] : listed;
  return pageAfter(deps, known, query, marker);
}

/** Lists the servers that the cells' indexes find, in any order. Returns null when one call cannot sort them, because they are too many. */
export async function listSorted(
  deps: Deps,
  query: ListQuery,
  marker: RequestRecord | null,
): Promise<ServerPage | null> {
  const page = await sketchedPage(deps, query, marker);
  if (page !== null) return page;
  const known = await readAll(deps, query);
  return known && pageAfter(deps, known, query, marker);
}

/** Returns the page of servers that are sorted before they are read, or null when they cannot be. */
async function sketchedPage(deps: Deps, query: ListQuery, marker: RequestRecord | null): Promise<ServerPage | null> {
  const places = await findSketched(deps, query, () => knownMarker(deps, marker), SORTED_MAX);
  return places && pageOfPlaces(deps, places, query);
}

async function pageAfter(
  deps: Deps,
  known: readonly KnownServer[],
  query: ListQuery,
  marker: RequestRecord | null,
): Promise<ServerPage> {
  return pageOf(known, query, await knownMarker(deps, marker));
}

async function knownMarker({ cells }: Deps, marker: RequestRecord | null): Promise<KnownServer | null> {
  return marker && hydrateServer(marker, cells, { withDeleted: true });
}

function refuseSorting(): never {
  throw badRequest(`More than ${SORTED_MAX} servers would have to be sorted: use a filter that fewer servers match.`);
}

async function softlyDeletedOf(deps: Deps, { projectId, nameContains }: ListQuery): Promise<readonly KnownServer[]> {
  const known = await readSoftlyDeleted(deps, await softlyDeletedPlaces(deps, projectId));
  return known.filter(({ server }) => nameContains === null || server.spec.name.includes(nameContains));
}

/** Reads all servers of a list, newest first. Returns null when it would have to look at too many. */
async function readAll(deps: Deps, query: ListQuery): Promise<readonly KnownServer[] | null> {
  const passing: KnownServer[] = [];
  const read = stretchReader(deps, query, "newest-first", null);
  for (let looks = 0; ; ) {
    const stretch = await read(SORTED_STRETCH);
    looks += stretch.known.length;
    if (looks > SORTED_MAX) return null;
    passing.push(...(await passingServers(stretch.known, query)));
    if (stretch.isLast) return passing;
  }
}

/** Returns the places after the marker, newest first. */
function newestAfter(places: readonly ListPosition[], marker: RequestRecord | null): readonly ListPosition[] {
  const after = marker && listPlaceOf(marker);
  return places.filter((place) => after === null || newestFirst(after, place) < 0).sort(newestFirst);
}

/** Returns the first page of the servers at these places, in their order. Only as many servers are read as fill it. */
async function pageOfPlaces(deps: Deps, places: readonly SketchedPlace[], query: ListQuery): Promise<ServerPage> {
  const { projectId, limit } = query;
  const servers: KnownServer[] = [];
  // Few of them may be of the project or pass the other filters, so each chunk is larger than the one before it.
  let size = Math.max(CHUNK_MIN, limit + 1);
  for (let at = 0; at < places.length; size *= 2) {
    const chunk = places.slice(at, at + size);
    at += chunk.length;
    for await (const known of passing(await readPlaces(deps, chunk, projectId), query)) {
      if (servers.length === limit) return { servers, nextMarker: servers.at(-1)?.server.uuid ?? null };
      servers.push(known);
    }
  }
  return { servers, nextMarker: null };
}

/** Reads the servers of the project at these places that are listed, in their order. */
async function readPlaces(
  { store, cells }: Deps,
  places: readonly SketchedPlace[],
  projectId: string | null,
): Promise<readonly KnownServer[]> {
  // Nearly all are still where they were found, so their cells are asked at the same time.
  const [records, read] = await Promise.all([
    store.requests(places.map(({ uuid }) => uuid)),
    readWhereFound(cells, places),
  ]);
  const byUuid = new Map(records.map((record) => [record.serverUuid, record]));
  // A cell may have a former row of a server that is at home in another cell by now.
  const found = places.flatMap(({ uuid, cell }) => {
    const record = byUuid.get(uuid);
    return record === undefined || (cell ?? record.cell) !== record.cell ? [] : [record];
  });
  const listed = found.filter((record) => projectId === null || record.spec.projectId === projectId).filter(isListed);
  return hydrateServers(listed, cells, { withDeleted: false, read });
}

/** Reads the servers at the places of which it is known where they were found, by `keyInCell`. Those that are there no longer, or whose cell does not answer, are not there. */
async function readWhereFound(cells: Cells, places: readonly SketchedPlace[]): Promise<ReadonlyMap<string, Server>> {
  const placesByCell = Map.groupBy(places, ({ cell }) => cell ?? null);
  const read = new Map<string, Server>();
  await Promise.all(
    Array.from(placesByCell, async ([name, its]) => {
      const answer = name === null ? undefined : await cells.get(name)?.servers(its.map(({ uuid }) => uuid));
      if (answer?.kind !== "answer") return;
      for (const server of answer.value) read.set(keyInCell(name, server.uuid), server);
    }),
  );
  return read;
}

/** Returns the page of these servers that begins after the marker. */
export async function pageOf(
  servers: readonly KnownServer[],
  query: ListQuery,
  marker: KnownServer | null,
): Promise<ServerPage> {
  const { limit } = query;
  const wanted = query.sort(await passingServers(servers, query), marker);
  const page = wanted.slice(0, limit);
  return { servers: page, nextMarker: page.length < wanted.length ? (page.at(-1)?.server.uuid ?? null) : null };
}

/**
 * Returns what the first source finds that finds no more than one call can sort. Null when none does, or a refusal if a scan might not find the servers of one
 * of them soon.
 */
async function fewPlaces(deps: Deps, query: ListQuery): Promise<readonly ListPosition[] | null> {
  for (const source of query.sources) {
    const places = await placesOf(deps, query, source);
    if (places !== null && places.length <= SORTED_MAX) return places;
  }
  if (query.sources.some(({ kind }) => !FOUND_BY_SCAN.has(kind))) refuseSorting();
  return null;
}

async function placesOf(
  deps: Deps,
  { projectId, nameContains }: ListQuery,
  source: ListSource,
): Promise<readonly ListPosition[] | null> {
  if (source.kind === "none") return [];
  if (source.kind === "tokens") return findByTokens(deps, source, { projectId, limit: SORTED_MAX });
  if (source.kind === "nodes") return placesOnNodes(deps, source.contains);
  if (source.kind === "states") return findByState(deps, { projectId, shown: source.shown, limit: SORTED_MAX });
  const records =
    source.kind === "host"
      ? await deps.store.requests(await uuidsOnHost(deps.cells, source))
      : source.kind === "uuid"
        ? await deps.store.requests(source.uuid === null ? [] : [source.uuid])
        : await deps.store.listRequests({
            ...{ projectId, marker: null, limit: SORTED_MAX + 1 },
            ...(nameContains !== null && { nameContains }),
            ...(source.kind === "tags" ? { tags: source } : { locked: true }),
          });
  return records.map(listPlaceOf);
}

/** Null when very many hosts have such names, or when a cell does not answer. */
async function placesOnNodes({ cells }: Deps, contains: string): Promise<readonly ListPosition[] | null> {
  const limits = { hostsMax: NODES_MAX, limit: SORTED_MAX + 1 };
  const answers = await Promise.all(
    Array.from(cells.values(), (cell) => cell.operations((store) => store.serversOnHostsNamed(contains, limits))),
  );
  const found: ListPosition[] = [];
  for (const answer of answers) {
    if (answer.kind === "unreachable" || answer.value === null) return null;
    found.push(...answer.value);
  }
  return found;
}

const isListed = ({ state, softlyDeleted }: RequestRecord): boolean =>
  state !== "deleted" && state !== "cancelled" && !softlyDeleted;

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
