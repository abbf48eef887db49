import type { PeriodStretch } from "../../../../core/stores/cell/cell-store.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { CellClient } from "../../cells/cell-client.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import { badRequest, unavailable } from "../../http/fault.ts";
import type { RequestsPort } from "../../ports.ts";
import type { UsageQuery } from "./read-usage-query.ts";

export interface UsageDeps {
  readonly cells: Cells;
  readonly store: Pick<RequestsPort, "requests">;
  readonly clock: Clock;
}

export interface FoundUsages {
  readonly servers: readonly Server[];
  /** The next page is after this server. Null when there is none. */
  readonly nextMarker: string | null;
}

/** Servers that one question to a cell looks at. */
const STRETCH_ROWS = 2_000;
/** How long a search continues. A page that is shorter than its limit then has a next one. */
const SEARCH_MS_MAX = 15_000;

/**
 * Finds the servers that ran in a period: cell by cell, and by UUID in each. Refuses a marker that is no server of the project (400). A
 * report without the servers of a cell would be wrong, so a cell that does not answer is a 503.
 */
export async function findUsages(
  { cells, store, clock }: UsageDeps,
  projectId: string | null,
  query: UsageQuery,
): Promise<FoundUsages> {
  const { beginMs, endMs, limit } = query;
  const names = [...cells.keys()].sort();
  let after = query.marker;
  let at = after === null ? 0 : names.indexOf(await cellOf(store, after, projectId));
  const lateMs = clock.monotonic() + SEARCH_MS_MAX;
  const found: Server[] = [];
  for (let cell = cells.get(names[at] ?? ""); cell !== undefined; cell = cells.get(names[at] ?? "")) {
    const { servers, resumeAt } = await ask(cell, { beginMs, endMs, projectId, after });
    found.push(...servers);
    if (found.length > limit) return { servers: found.slice(0, limit), nextMarker: found[limit - 1]?.uuid ?? null };
    after = resumeAt;
    if (resumeAt === null) at += 1;
    else if (clock.monotonic() > lateMs) return { servers: found, nextMarker: orLate(found, resumeAt) };
  }
  return { servers: found, nextMarker: null };
}

async function ask(
  cell: CellClient,
  query: {
    readonly beginMs: number;
    readonly endMs: number;
    readonly projectId: string | null;
    readonly after: string | null;
  },
): Promise<PeriodStretch> {
  const answer = await cell.serversOfPeriod({ ...query, rows: STRETCH_ROWS });
  if (answer.kind === "unreachable") throw unavailable(`Cell ${cell.name} does not answer, so its usage is unknown.`);
  return answer.value;
}

/** Returns the cell of the marker. */
async function cellOf(store: UsageDeps["store"], marker: string, projectId: string | null): Promise<string> {
  const [record] = await store.requests([marker]);
  const isKnown = record !== undefined && (projectId === null || record.spec.projectId === projectId);
  if (!isKnown || record.cell === null) throw badRequest(`Marker ${marker.slice(0, 255)} could not be found.`);
  return record.cell;
}

/** An empty page would claim that nothing follows. */
function orLate(found: readonly Server[], resumeAt: string): string {
  if (found.length === 0) throw unavailable("No server of the period was found in time: name a project.");
  return resumeAt;
}
