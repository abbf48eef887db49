import type { VolumeRecord, VolumeStore } from "../../../../core/stores/api/volume-store.ts";
import type { CellClient } from "../../cells/cell-client.ts";

/** The row is read before the cell is asked, so it may be this much older than it was then. */
const READ_MS = 10_000;

/**
 * Takes back an operation that its cell has not begun: a volume that was to be attached is released, and one that was to be detached stays attached. The
 * operation is closed in the cell first, so that it cannot begin afterwards, however late its api is. Nothing changes if it has begun, or if the cell
 * does not answer; the settler looks again.
 *
 * A cell whose database was restored since the operation was planned may have forgotten that it has carried it out. Then a guest may have the volume, which would become somebody else's, so it
 * stays the server's: its user can detach it, for which the host is asked. `isRefused`: the cell has just refused the operation, so it has not begun it before either.
 */
export async function closeAttachment(
  store: Pick<VolumeStore, "release" | "confirmAttached">,
  cell: Pick<CellClient, "operations">,
  { id, attachment }: Pick<VolumeRecord, "id" | "attachment">,
  nowMs: number,
  { isRefused }: { readonly isRefused: boolean },
): Promise<void> {
  const taskId = attachment?.taskId ?? null;
  if (attachment === null || taskId === null) return;
  const { serverUuid, phase, phaseAgeMs } = attachment;
  const answer = await cell.operations(async (cellStore) => {
    const [closed] = await cellStore.closeTasks([{ taskId, serverUuid }]);
    const [server] = await cellStore.servers([serverUuid]);
    const restoredAgoMs = isRefused ? null : await cellStore.restoredAgoMs();
    const isForgotten = restoredAgoMs !== null && restoredAgoMs < phaseAgeMs + READ_MS;
    return { isClosed: closed === "closed", isForgotten, server };
  });
  if (answer.kind !== "answer" || !answer.value.isClosed) return;
  const has = answer.value.server?.spec.volumes.some((volume) => volume.volumeId === id) ?? false;
  if (has || answer.value.isForgotten || phase === "detaching") await store.confirmAttached(id, taskId, nowMs);
  else await store.release(id, taskId);
}
