import { type TaskLife, taskLife } from "../../../../core/scheduling/explain/task-life.ts";
import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import type { DecisionRecord, DecisionStore } from "../../../../core/stores/api/decision-store.ts";
import type { MoveRecord, MoveStore } from "../../../../core/stores/api/move-store.ts";
import type { AdminHost } from "../../../../core/stores/cell/host-admin-store.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import type { CellClient } from "../../cells/cell-client.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { RequestsPort } from "../../ports.ts";

/** Maximum number of moves and migrations that are read for one server, from the newest. */
const MOVES_MAX = 200;

export interface LifeDeps {
  readonly store: Pick<RequestsPort, "requests">;
  readonly cells: Cells;
  readonly movesStore: Pick<MoveStore, "movesOf"> | null;
  readonly decisions: Pick<DecisionStore, "decisionsOf"> | null;
}

/** Everything that the API database and the server's cell still store about a server. */
export interface KnownLife {
  readonly serverUuid: string;
  /** Null when the request was archived or never accepted. */
  readonly request: RequestRecord | null;
  readonly decisions: readonly DecisionRecord[];
  readonly moves: readonly MoveRecord[];
  /** The cell that has or had the server, or null when it is not known. */
  readonly cellName: string | null;
  /** Null when no cell is known, or it does not answer. */
  readonly inCell: CellLife | null;
  /** Cells that did not answer. */
  readonly unreachable: readonly string[];
}

/** The records of a cell about a server. */
export interface CellLife {
  /** Null when the cell does not have the server (any longer). */
  readonly server: Server | null;
  readonly tasks: readonly TaskLife[];
  readonly hosts: readonly AdminHost[];
}

/**
 * Reads everything that is known about a server, even a deleted one. A cell that does not answer is named, and the rest is returned. A
 * server without a request is looked for in all cells, since the API database may have been archived before the cell.
 */
export async function readLife(deps: LifeDeps, serverUuid: string): Promise<KnownLife> {
  const [[request], decisions, moves] = await Promise.all([
    deps.store.requests([serverUuid]),
    deps.decisions?.decisionsOf(serverUuid) ?? [],
    deps.movesStore?.movesOf(serverUuid, MOVES_MAX) ?? [],
  ]);
  const known = { serverUuid, request: request ?? null, decisions, moves };
  if (request !== undefined) return { ...known, ...(await readIn(deps.cells, request.cell, serverUuid)) };
  const found = await Promise.all([...deps.cells.keys()].map((name) => readIn(deps.cells, name, serverUuid)));
  const home = found.find(({ inCell }) => inCell !== null && (inCell.server !== null || inCell.tasks.length > 0));
  const unreachable = found.flatMap((one) => one.unreachable);
  return { ...known, cellName: home?.cellName ?? null, inCell: home?.inCell ?? null, unreachable };
}

async function readIn(
  cells: Cells,
  cellName: string | null,
  serverUuid: string,
): Promise<Pick<KnownLife, "cellName" | "inCell" | "unreachable">> {
  if (cellName === null) return { cellName, inCell: null, unreachable: [] };
  const cell = cells.get(cellName);
  const inCell = cell === undefined ? null : await readCell(cell, serverUuid);
  return { cellName, inCell, unreachable: inCell === null ? [cellName] : [] };
}

/** Returns null when the cell does not answer. */
async function readCell(cell: CellClient, serverUuid: string): Promise<CellLife | null> {
  const [server, tasks, attempts, migrations] = await Promise.all([
    cell.server(serverUuid),
    cell.operations((store) => store.tasksOf(serverUuid)),
    cell.attempts(serverUuid),
    cell.operations((store) => store.migrations({ serverUuid, limit: MOVES_MAX })),
  ]);
  if (server.kind !== "answer" || tasks.kind !== "answer" || attempts.kind !== "answer" || migrations.kind !== "answer")
    return null;
  const told = tasks.value.map((task) => taskLife(task, attempts.value, migrations.value));
  const names = hostsInQuestion(server.value, told);
  const hosts = names.length === 0 ? ({ kind: "answer", value: [] } as const) : await cell.adminHosts(names);
  return hosts.kind === "answer" ? { server: server.value, tasks: told, hosts: hosts.value } : null;
}

/** Returns the server's host and the hosts of attempts that have not ended. */
function hostsInQuestion(server: Server | null, tasks: readonly TaskLife[]): readonly string[] {
  const tried = tasks.flatMap(({ attempts }) => attempts.filter(({ result }) => result === null));
  const home = server?.host ?? null;
  return [...new Set([...(home === null ? [] : [home]), ...tried.map(({ host }) => host)])];
}
