import type { RequestOrder, RequestRecord } from "../../../../core/stores/api/api-store.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import { type Cells, hydrateServers, type KnownServer } from "../../cells/hydrate-servers.ts";
import type { KnownCall } from "../../http/call.ts";
import { type Fault, unavailable } from "../../http/fault.ts";
import type { RequestsPort } from "../../ports.ts";
import type { SoftDeleter } from "../soft-deletion/soft-deleter.ts";
import { listChanged } from "./list-changed.ts";
import { listFound, listSorted } from "./list-found.ts";
import { isByCreation, startAfter, storedOrderOf } from "./list-order.ts";
import { type ListQuery, refuseMarker } from "./list-query.ts";
import type { ReadStretch } from "./list-stretch.ts";
import { passing } from "./passing-servers.ts";
import { stretchReader } from "./read-stretches.ts";
import type { RequestFinder } from "./request-finder.ts";
import type { ServerPage } from "./server-page.ts";
import { withSoftlyDeleted } from "./soft-deleted-stretches.ts";

export interface ListServersDeps {
  readonly store: Pick<RequestsPort, "requests" | "changesOf" | "listRequests" | "scanRequests" | "isRareName">;
  readonly clock: Pick<Clock, "monotonic">;
  readonly finder: RequestFinder;
  readonly cells: Cells;
  readonly softDeleter: Pick<SoftDeleter, "softlyDeleted"> | null;
}

/** Fewest and most requests that a filtered search reads at a time. */
const STRETCH_ROWS_MIN = 100;
const STRETCH_ROWS = 1_000;
/** A stretch is this much longer than what it is expected to need. */
const STRETCH_SPARE = 1.15;
/** Maximum number of requests that one call searches to fill a filtered page. The next page continues from there. */
const SCANNED_MAX = 10_000;
/** How long a search continues without finding a server. An empty page is answered only when no server follows. */
const SEARCH_MS_MAX = 15_000;

/**
 * Handles `GET /servers`, newest first unless another order is asked for. A filter that few servers pass may make a page shorter than its limit, and then there is a next
 * page. A page is empty only when no server follows.
 */
export async function listServers(deps: ListServersDeps, call: KnownCall, query: ListQuery): Promise<ServerPage> {
  const marker = query.marker === null ? null : await deps.finder.find(query.marker, call);
  if (marker === null && query.marker !== null) refuseMarker(query.marker);
  if (query.limit === 0) return { servers: [], nextMarker: null };
  if (query.changedSinceMs !== null || query.changedBeforeMs !== null || query.deleted !== null)
    return listChanged(deps, query, marker);
  const order = storedOrderOf(query.order);
  const isMerged = query.softDeleted && isByCreation(order);
  const isSorted = query.sources.length > 0 || order === null || (query.softDeleted && !isMerged);
  const found = isSorted ? await listFound(deps, query, marker) : null;
  if (found !== null || order === null) return found ?? { servers: [], nextMarker: null };
  if (!isMerged && query.matches === null && query.nameContains === null) return listAll(deps, query, order, marker);
  const read = stretchReader(deps, query, order, marker);
  if (!isMerged) {
    // No index has the servers of a status or a zone by name.
    const isFewByIndex = query.indexed.some(({ attribute }) => attribute === "status" || attribute === "host");
    const isOtherGood = isFewByIndex && !isByCreation(order);
    return search(deps, query, read, isOtherGood ? () => listSorted(deps, query, marker) : null);
  }
  return search(deps, query, await withSoftlyDeleted(deps, read, { projectId: query.projectId, order, marker }));
}

/**
 * Lists without a filter. A page of requests is then nearly a page of servers: only servers that their cells have deleted are missing.
 * Where many are missing (after a restore of the API database), the rest of the page is read in large batches, within the time limit of a
 * search.
 */
async function listAll(
  deps: ListServersDeps,
  query: ListQuery,
  order: RequestOrder,
  start: RequestRecord | null,
): Promise<ServerPage> {
  const { projectId, limit } = query;
  const servers: KnownServer[] = [];
  const endMs = deps.clock.monotonic() + SEARCH_MS_MAX;
  let scanned = 0;
  for (let last = start, wanted = limit; ; wanted = STRETCH_ROWS) {
    const records = await deps.store.listRequests({ projectId, ...startAfter(last, order), limit: wanted, order });
    servers.push(...(await hydrateServers(records, deps.cells, { withDeleted: false })));
    scanned += records.length;
    last = records.at(-1) ?? last;
    if (servers.length > limit)
      return { servers: servers.slice(0, limit), nextMarker: servers[limit - 1]!.server.uuid };
    if (records.length < wanted) return { servers, nextMarker: null };
    const nextMarker = last?.serverUuid ?? null;
    if (servers.length === limit) return { servers, nextMarker };
    if (deps.clock.monotonic() <= endMs) continue;
    if (servers.length === 0) throw foundNothingInTime(scanned);
    return { servers, nextMarker };
  }
}

/**
 * Lists through a filter, some servers at a time. If so few of the first ones pass that one call would not fill the page, the other way is tried once, which returns null when it
 * finds too many servers. Gives up with a 503 when it has found nothing for too long, since an empty page would claim that there is nothing.
 */
async function search(
  deps: ListServersDeps,
  query: ListQuery,
  read: ReadStretch,
  otherWay: (() => Promise<ServerPage | null>) | null = null,
): Promise<ServerPage> {
  const { limit, nameContains } = query;
  const servers: KnownServer[] = [];
  const endMs = deps.clock.monotonic() + SEARCH_MS_MAX;
  let scanned = 0;
  let untried = otherWay;
  for (let marker = query.marker; ; ) {
    if (untried !== null && scanned >= STRETCH_ROWS && servers.length * SCANNED_MAX < limit * scanned) {
      const page = await untried();
      if (page !== null) return page;
      untried = null;
    }
    const isLate = deps.clock.monotonic() > endMs;
    if ((isLate || scanned >= SCANNED_MAX) && servers.length > 0) return { servers, nextMarker: marker };
    if (isLate) throw foundNothingInTime(scanned);
    const rows = stretchFor(query, servers.length, scanned);
    const stretch = await read(rows);
    scanned += rows;
    // The server's name in its cell may differ from the name by which it was found.
    const named = stretch.known.filter(
      ({ server }) => nameContains === null || server.spec.name.includes(nameContains),
    );
    for await (const known of passing(named, query)) {
      servers.push(known);
      if (servers.length === limit) return { servers, nextMarker: known.server.uuid };
    }
    if (stretch.isLast) return { servers, nextMarker: null };
    marker = stretch.known.at(-1)?.server.uuid ?? marker;
  }
}

/**
 * How many requests to read next: as many as fill the page if the share of servers that pass stays what it was so far, and a bit more. The first
 * time all are expected to pass. Nearly all servers that an index finds do, so that no more than the page are read then.
 */
function stretchFor({ limit, indexed }: ListQuery, found: number, scanned: number): number {
  if (scanned === 0 && indexed.length > 0) return Math.max(STRETCH_ROWS_MIN, Math.min(STRETCH_ROWS, limit));
  const share = scanned === 0 ? 1 : found / scanned;
  const rows = share === 0 ? STRETCH_ROWS : Math.ceil(((limit - found) / share) * STRETCH_SPARE);
  return Math.min(STRETCH_ROWS, Math.max(STRETCH_ROWS_MIN, rows));
}

function foundNothingInTime(scanned: number): Fault {
  return unavailable(
    `None of the first ${scanned} servers of the list matches, and searching the others takes too long: use a marker, or a filter that more servers match.`,
  );
}
