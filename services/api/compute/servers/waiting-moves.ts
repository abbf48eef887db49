import type { MoveStore } from "../../../../core/stores/api/move-store.ts";
import { OPERATIONS, operationKind } from "../../../../core/tasks/operation-kinds.ts";
import { firstStage, taskStateOf } from "../../../../core/tasks/operation-stages.ts";
import type { MoveRequest } from "../../../../proto/gen/berth/scheduler.ts";
import type { KnownServer } from "../../cells/hydrate-servers.ts";
import { withTaskState } from "./shown-state.ts";

/** The moves that wait for a host, by their servers' uuids. */
export type WaitingMoves = ReadonlyMap<string, MoveRequest>;

/** Reads the waiting moves. Call this before asking the cells: the cell then shows any move that begins in between. */
export async function readWaitingMoves(
  store: Pick<MoveStore, "waiting"> | null,
  serverUuids: readonly string[],
): Promise<WaitingMoves> {
  if (store === null || serverUuids.length === 0) return new Map();
  return new Map((await store.waiting(serverUuids)).map(({ request }) => [request.serverUuid, request]));
}

/** The task state of a server whose move of this kind waits for a host, as refusals of other operations name it. */
export function waitingTaskState(name: string): string {
  const kind = operationKind(name);
  return kind === null ? name : taskStateOf(kind, firstStage(kind));
}

/** Shows a server as moving from the moment its move was accepted, although its cell does not know of the move yet. */
export function withWaitingMove(known: KnownServer, waiting: WaitingMoves): KnownServer {
  const { server } = known;
  const kind = operationKind(waiting.get(server.uuid)?.kind ?? "");
  if (kind === null || server.taskState !== null || !OPERATIONS[kind].allowedFrom.includes(server.status)) return known;
  return withTaskState(known, waitingTaskState(kind));
}
