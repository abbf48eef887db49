import type { VolumeRecord, VolumeStore } from "../../../../core/stores/api/volume-store.ts";
import type { CellClient } from "../../cells/cell-client.ts";

/**
 * Takes back an operation that its cell has not begun: a volume that was to be attached is released, and one that was to be detached stays attached. The
 * operation is closed in the cell first, so that it cannot begin afterwards, however late its api is. Nothing changes if it has begun, or if the cell
 * does not answer; the settler looks again.
 */
export async function closeAttachment(
  store: Pick<VolumeStore, "release" | "confirmAttached">,
  cell: Pick<CellClient, "operations">,
  { id, attachment }: Pick<VolumeRecord, "id" | "attachment">,
  nowMs: number,
): Promise<void> {
  const taskId = attachment?.taskId ?? null;
  if (attachment === null || taskId === null) return;
  const { serverUuid, phase } = attachment;
  const answer = await cell.operations(async (cellStore) => {
    const [closed] = await cellStore.closeTasks([{ taskId, serverUuid }]);
    const [server] = await cellStore.servers([serverUuid]);
    return { isClosed: closed === "closed", server };
  });
  if (answer.kind !== "answer" || !answer.value.isClosed) return;
  const has = answer.value.server?.spec.volumes.some((volume) => volume.volumeId === id) ?? false;
  if (has || phase === "detaching") await store.confirmAttached(id, taskId, nowMs);
  else await store.release(id, taskId);
}
