import { type ListPosition, newestFirst } from "../../../../core/stores/cell/listed-servers.ts";
import { SERVER_STATUSES, type ServerStatus } from "../../../../core/tasks/server.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { RequestsPort } from "../../ports.ts";
import { listPlaceOf } from "./list-order.ts";

/** Statuses for which the list is scanned: those that very many servers have, because a scan finds such servers soon, and those without an index. */
const USUAL: ReadonlySet<string> = new Set(["ACTIVE", "UNKNOWN", "DELETED"]);

/**
 * Among the servers that `findByState` returns for these statuses are all that have a task state: those that no cell has yet, those whose task is open in
 * their cell, and those whose soft deletion is taken back, which their cell has not begun yet.
 */
export const STATUSES_WITH_TASKS: ReadonlySet<string> = new Set(["BUILD", "SOFT_DELETED"]);

/** Whether servers of these shown statuses are found by indexes. */
export function isServedByIndex(statuses: ReadonlySet<string>): boolean {
  return statuses.size > 0 && [...statuses].every((status) => !USUAL.has(status));
}

/**
 * Whether cells find all servers of these shown statuses by their status alone: no server is shown with one of them because of an operation, or before it is
 * in a cell, except in ERROR.
 */
export function isAtRest(statuses: ReadonlySet<string>): boolean {
  return isServedByIndex(statuses) && !isBusy(statuses);
}

/** Whether one of the statuses is one that a server only has during an operation. */
const isBusy = (shown: ReadonlySet<string>): boolean =>
  shown.has("BUILD") || [...shown].some((status) => !SERVER_STATUSES.includes(status as ServerStatus));

/**
 * Returns the servers that may be shown with one of the statuses, newest first, at most `limit` and one more: those that a cell has at rest in
 * such a status, those with an open task, and those that no cell has. The caller compares each with the statuses again. Cells that do not
 * answer are left out, since their servers are shown as UNKNOWN. Null when a cell has more than `limit`.
 */
export async function findByState(
  { cells, store }: { readonly cells: Cells; readonly store: Pick<RequestsPort, "listRequests"> },
  {
    projectId,
    shown,
    limit,
  }: { readonly projectId: string | null; readonly shown: ReadonlySet<string>; readonly limit: number },
): Promise<readonly ListPosition[] | null> {
  const statuses = SERVER_STATUSES.filter((status): status is ServerStatus => shown.has(status));
  const busy = isBusy(shown);
  const most = limit + 1;
  const inNoCell = {
    ...(shown.has("BUILD") && ({ open: true } as const)),
    ...(shown.has("ERROR") && ({ failed: true } as const)),
  };
  const mayBeInNoCell = shown.has("BUILD") || shown.has("ERROR");
  const elsewhere = mayBeInNoCell
    ? await store.listRequests({ projectId, marker: null, limit: most, ...inNoCell })
    : [];
  // Asked afterwards: a server that leaves the open requests meanwhile is in its cell by then.
  const inCells = await Promise.all(
    Array.from(cells.values(), (cell) =>
      cell.operations((cellStore) => cellStore.serversByStatus({ statuses, busy }, limit)),
    ),
  );
  const found: ListPosition[] = [];
  for (const answer of inCells) {
    if (answer.kind === "unreachable") continue;
    if (answer.value === null) return null;
    found.push(...answer.value);
  }
  found.push(...elsewhere.map(listPlaceOf));
  return [...new Map(found.map((place) => [place.uuid, place])).values()].sort(newestFirst).slice(0, most);
}
