import { bootsFromVolume } from "../../../../core/tasks/server-volumes.ts";
import { badRequest } from "../../http/fault.ts";
import type { ActionTarget } from "../server-actions/action-target.ts";

/** The actions that need a server's local boot disk, with the reason for which they are refused where there is none. Source: the texts of Nova, where it has one. */
const REFUSALS = {
  rescue: "Cannot rescue a volume-backed instance",
  createBackup: "Backup is not supported for volume-backed instances.",
} as const;

/** Refuses what cannot be done to a server that boots from a volume (400). */
export function refuseVolumeBacked({ action, server }: Pick<ActionTarget, "action" | "server">): void {
  if (!(action in REFUSALS) || !bootsFromVolume(server.spec)) return;
  throw badRequest(REFUSALS[action as keyof typeof REFUSALS]);
}
