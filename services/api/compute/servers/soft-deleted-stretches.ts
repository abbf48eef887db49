import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import { type ListPosition, newestFirst } from "../../../../core/stores/cell/listed-servers.ts";
import { type Cells, hydrateServers, type KnownServer } from "../../cells/hydrate-servers.ts";
import { badRequest } from "../../http/fault.ts";
import type { RequestsPort } from "../../ports.ts";
import type { SoftDeleter } from "../soft-deletion/soft-deleter.ts";
import type { ReadStretch } from "./list-stretch.ts";

/** Maximum number of servers that are deleted softly in one list. */
const KEPT_MAX = 10_000;

export interface SoftlyDeletedDeps {
  readonly store: Pick<RequestsPort, "requests">;
  readonly cells: Cells;
  /** Null or absent when no server is deleted softly. */
  readonly softDeleter?: Pick<SoftDeleter, "softlyDeleted"> | null;
}

/** Returns the places of the servers that are deleted softly, of the project or (null) of all. Refuses more than one list can have. */
export async function softlyDeletedPlaces(
  { softDeleter }: SoftlyDeletedDeps,
  projectId: string | null,
): Promise<readonly ListPosition[]> {
  const places = (await softDeleter?.softlyDeleted(projectId, KEPT_MAX + 1)) ?? [];
  if (places.length <= KEPT_MAX) return places;
  throw badRequest(
    `More than ${KEPT_MAX} servers are deleted softly, and one list can have no more of them: leave out soft_deleted, or ask for the servers of one project with project_id.`,
  );
}

/** Reads the servers at these places that are still deleted softly. */
export async function readSoftlyDeleted(
  { store, cells }: SoftlyDeletedDeps,
  places: readonly ListPosition[],
): Promise<readonly KnownServer[]> {
  const records = await store.requests(places.map(({ uuid }) => uuid));
  return hydrateServers(
    records.filter((record) => record.softlyDeleted),
    cells,
    { withDeleted: false },
  );
}

/**
 * Adds the servers that are deleted softly to a list that is read in the order of creation. Each stretch has all servers of both kinds up to its end, so
 * that any server of it may be the marker of the next page.
 */
export async function withSoftlyDeleted(
  deps: SoftlyDeletedDeps,
  read: ReadStretch,
  {
    projectId,
    order,
    marker,
  }: {
    readonly projectId: string | null;
    readonly order: "newest-first" | "oldest-first";
    readonly marker: RequestRecord | null;
  },
): Promise<ReadStretch> {
  const compare = (one: ListPosition, other: ListPosition) =>
    newestFirst(one, other) * (order === "newest-first" ? 1 : -1);
  const after = marker && { uuid: marker.serverUuid, createdAtMs: marker.createdAtMs };
  const places = await softlyDeletedPlaces(deps, projectId);
  let left = places.filter((place) => after === null || compare(after, place) < 0).sort(compare);
  let others: readonly KnownServer[] = [];
  let isRead = false;
  return async (rows) => {
    if (others.length === 0 && !isRead) ({ known: others, isLast: isRead } = await read(rows));
    const end = others.at(-1)?.server;
    const due = left.filter((place) => isRead || (end !== undefined && compare(place, end) < 0)).slice(0, rows);
    left = left.slice(due.length);
    const last = due.length < rows ? undefined : due.at(-1);
    // Further servers that are deleted softly may come before the others.
    const ready = last === undefined ? others : others.filter(({ server }) => compare(server, last) < 0);
    others = others.slice(ready.length);
    const known = [...ready, ...(await readSoftlyDeleted(deps, due))];
    known.sort((one, other) => compare(one.server, other.server));
    return { known, isLast: isRead && others.length === 0 && left.length === 0 };
  };
}
