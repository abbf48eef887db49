import type { PlugEvent } from "../../../../core/stores/cell/plug-store.ts";
import { isLiveMove, OPERATION_KINDS } from "../../../../core/tasks/operation-kinds.ts";
import { taskStateOf } from "../../../../core/tasks/operation-stages.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";

/** What servers show while a conductor may wait for an event: those that are being migrated live, while their destination is prepared, and those whose boot volume is being filled. */
const TASK_STATES: Readonly<Record<"port" | "volume", readonly (string | null)[]>> = {
  port: OPERATION_KINDS.filter(isLiveMove).map((kind) => taskStateOf(kind, "preparing")),
  volume: [taskStateOf("reimage", "reimaging")],
};

/** A server in its cell, as far as its ports and its boot volume are awaited there. */
export interface PluggedServer {
  readonly cellName: string;
  readonly taskState: Server["taskState"];
}

/**
 * Writes events about ports of servers that are being migrated live, and about boot volumes that Cinder has filled, into the servers' cells, where a conductor may wait for them. Other servers cost nothing:
 * their ports show in Neutron how they are connected. Tells all cells at once, and returns the names of those that do not answer.
 */
export async function passOnPlugged(
  cells: Cells,
  events: readonly (PlugEvent & { readonly of: "port" | "volume"; readonly server: PluggedServer })[],
): Promise<readonly string[]> {
  const awaited = events.filter(({ of, server }) => TASK_STATES[of].includes(server.taskState));
  const told = [...Map.groupBy(awaited, ({ server }) => server.cellName)].map(async ([name, ofCell]) => {
    const noted = ofCell.map(({ serverUuid, portId, isFailed }) => ({ serverUuid, portId, isFailed }));
    const answer = await cells.get(name)?.operations((store) => store.notePlugged(noted));
    return answer?.kind === "answer" ? [] : [name];
  });
  return (await Promise.all(told)).flat();
}
