import type { VolumeStore } from "../../../../core/stores/api/volume-store.ts";
import type { CellClient } from "../../cells/cell-client.ts";
import type { AttachedVolume } from "./find-attachment.ts";
import { judgeAttachment } from "./judge-attachment.ts";

/**
 * Records that a server has a volume whose attachment has ended in the server's cell, as the settler would do at its next look. Cinder shows
 * such a volume as `in-use` before that look, so clients that wait for this detach it at once. Changes nothing while the operation runs, or if the cell does not
 * answer.
 */
export async function confirmEnded(
  volumes: Pick<VolumeStore, "confirmAttached">,
  cell: Pick<CellClient, "operations">,
  { id, attachment }: AttachedVolume,
  nowMs: number,
): Promise<void> {
  const { taskId, serverUuid, phase } = attachment;
  if (taskId === null || phase !== "attaching") return;
  const answer = await cell.operations(async (store) => {
    const [outcome = null] = await store.outcomes([taskId]);
    const [server = null] = await store.servers([serverUuid]);
    // A guest that is left matters only to volumes that are released, and this releases none.
    return { outcome, server, guestLeft: true };
  });
  if (answer.kind !== "answer" || judgeAttachment(id, attachment, answer.value, false) !== "attached") return;
  await volumes.confirmAttached(id, taskId, nowMs);
}
