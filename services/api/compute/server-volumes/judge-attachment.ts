import type { VolumeAttachment } from "../../../../core/stores/api/volume-store.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import type { TaskOutcome } from "../../../../core/tasks/task-record.ts";

/** What a cell says about a volume's operation and its server. The operation is read first, and the guests last. */
export interface CellLook {
  /** Null when the cell has no such operation. */
  readonly outcome: TaskOutcome | "open" | null;
  /** Null when the cell has no such server. */
  readonly server: Pick<Server, "status" | "spec" | "host"> | null;
  /** A guest of the server may be on a host that it has left. */
  readonly guestLeft: boolean;
}

/**
 * `wait`: look again later. `close`: close the operation in the cell, which has not begun it. `attached`: the server has the volume. `release`: no
 * guest has it. `end`: the server is gone, and so are its guests.
 */
export type AttachmentVerdict = "wait" | "close" | "attached" | "release" | "end";

/**
 * Judges a volume that is attaching or detaching, or whose server is gone. It is released only after the server's cell has said that no guest has
 * it: the operation is over and has taken the volume out of the server's spec, or has never put it in, which it does only after its host's word. `isOld`: the call that planned
 * the operation has had its time.
 */
export function judgeAttachment(
  volumeId: string,
  { taskId }: Pick<VolumeAttachment, "taskId">,
  { outcome, server, guestLeft }: CellLook,
  isOld: boolean,
): AttachmentVerdict {
  const isGone = server === null || server.status === "DELETED";
  if (taskId === null) return isGone && !guestLeft ? "end" : "wait";
  // The API database hears of it soon, and then there is no operation to wait for.
  if (isGone) return "wait";
  switch (outcome) {
    case null:
      return isOld ? "close" : "wait";
    case "open":
    // A delete has broken it off, and nobody knows what the host did.
    case "cancelled":
    case "deleted":
      return "wait";
    case "success":
    case "error": {
      if (server.spec.volumes.some((volume) => volume.volumeId === volumeId)) return "attached";
      // A conductor that could not read the operation has ended it so, and nobody knows what the host did.
      // No host was told of one that was for a server on none.
      const isUnknown = outcome === "error" && server.status === "ERROR" && server.host !== null;
      return isUnknown || guestLeft ? "wait" : "release";
    }
    default:
      return outcome satisfies never;
  }
}
