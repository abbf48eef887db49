import type { Server } from "../../../../core/tasks/server.ts";
import { volumeInDoubt } from "../../../../core/tasks/server-volumes.ts";
import type { ServerVolume } from "../../../../proto/gen/berth/shared.ts";
import { badRequest, conflict } from "../../http/fault.ts";
import type { ActionTarget } from "../server-actions/action-target.ts";

/**
 * Refuses what would end the guest of a server of which only the guest's host knows which volume it has used (409): without that host's record
 * nobody could ever tell.
 */
export function refuseInDoubt({ action, server }: Pick<ActionTarget, "action" | "server">): void {
  const volume = volumeInDoubt(server.spec);
  if (volume === undefined) return;
  throw conflict(`Cannot '${action}' instance ${server.uuid}: ${unknown(volume)}. ${wayOut(server, volume)}`);
}

/**
 * Refuses to detach a volume in doubt from a server whose move waits for its confirmation: the host that has replaced the volume would lose the only record of which of the two the guest has used, while the
 * guest that the source keeps has neither. The code is 400, as by Nova, whose Cinder does not let a volume be detached that it migrates.
 */
export function refuseDetachInDoubt(server: Pick<Server, "status" | "spec">, volumeId: string): void {
  const volume = volumeInDoubt({ volumes: server.spec.volumes.filter((one) => one.volumeId === volumeId) });
  if (volume === undefined || server.status !== "VERIFY_RESIZE") return;
  throw badRequest(
    `Invalid volume: volume ${volumeId} cannot be detached now: ${unknown(volume)}. ${wayOut(server, volume)}`,
  );
}

const unknown = ({ volumeId, replacedBy }: ServerVolume): string =>
  `it is unknown whether its guest uses volume ${volumeId} or volume ${replacedBy}, which was to replace it, and its host alone can tell`;

/** What is possible depends on the server's status, and on whether it boots from the volume. */
function wayOut({ status }: Pick<Server, "status">, { isRoot }: ServerVolume): string {
  const admin = "ask your administrator, who can settle it (berth volume settle)";
  if (status === "VERIFY_RESIZE") return `Confirm the move, or ${admin}, first.`;
  if (isRoot) return `A${admin.slice(1)}.`;
  return `Hard reboot the server, and detach the volume from it, first; or ${admin}.`;
}
