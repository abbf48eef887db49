import type { PlugEvent, PluggedPort } from "../../../core/stores/cell/plug-store.ts";
import { parseAttemptId } from "../../../core/tasks/attempt-id.ts";
import { hearsNeighbours } from "../../../core/tasks/operation-kinds.ts";
import type { CellState } from "./cell-state.ts";

/** See `PlugStore.notePlugged`. */
export function addPlugged(cell: CellState, events: readonly PlugEvent[]): void {
  for (const { serverUuid, ...port } of events) {
    forgetEnded(cell, serverUuid);
    const attemptId = destinationOf(cell, serverUuid);
    if (attemptId === null) continue;
    const ports = cell.plugged.get(attemptId) ?? new Map<string, PluggedPort>();
    cell.plugged.set(attemptId, ports.set(port.portId, port));
  }
}

/** See `PlugStore.pluggedPorts`. */
export function pluggedPortsOf({ plugged }: CellState, attemptId: string): readonly PluggedPort[] {
  const ports = [...(plugged.get(attemptId)?.values() ?? [])];
  return ports.toSorted((a, b) => (a.portId < b.portId ? -1 : 1));
}

/** Deletes what was noted for the server's earlier migrations, of which nobody waits for anything. */
function forgetEnded({ plugged, migrations, attemptsByServer }: CellState, serverUuid: string): void {
  for (const attemptId of attemptsByServer.get(serverUuid) ?? [])
    if (migrations.get(parseAttemptId(attemptId)?.taskId ?? "")?.ended) plugged.delete(attemptId);
}

/** A migration has the id of its task. */
function destinationOf({ migrations, tasksByServer }: CellState, serverUuid: string): string | null {
  for (const { id } of tasksByServer.get(serverUuid) ?? []) {
    const move = migrations.get(id);
    if (move !== undefined && !move.ended && move.kind !== "leftover" && hearsNeighbours(move.kind))
      return move.destAttemptId;
  }
  return null;
}
