import { volumeInDoubt } from "../../../../core/tasks/server-volumes.ts";
import { conflict } from "../../http/fault.ts";
import type { ActionTarget } from "../server-actions/action-target.ts";

/**
 * Refuses what would end the guest of a server of which only the guest's host knows which volume it has used (409): without that host's record
 * nobody could ever tell.
 */
export function refuseInDoubt({ action, server }: Pick<ActionTarget, "action" | "server">): void {
  const volume = volumeInDoubt(server.spec);
  if (volume === undefined) return;
  throw conflict(
    `Cannot '${action}' instance ${server.uuid}: it is unknown whether its guest uses volume ${volume.volumeId} or volume ${volume.replacedBy}, which was to replace it, and its host alone can tell. Hard reboot the server, and detach the volume from it, first; or ask your administrator, who can settle it (berth volume settle).`,
  );
}
