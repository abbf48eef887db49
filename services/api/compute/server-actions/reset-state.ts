import { idInCinder } from "../../../../core/tasks/server-volumes.ts";
import { conflict, invalidField, unavailable } from "../../http/fault.ts";
import type { ServerVolumes } from "../server-volumes/server-volumes.ts";
import { serverNotFound } from "../servers/request-finder.ts";
import type { ActionBody } from "./action-body.ts";
import { type ActionTarget, busy } from "./action-target.ts";

export type ResetStatus = "ACTIVE" | "ERROR";

export function readResetState(body: ActionBody): ResetStatus {
  const state = body.refuseOthers("state").require("state").raw("state");
  if (state !== "active" && state !== "error")
    throw invalidField("state", state, "It is not one of ['active', 'error'].");
  return state === "active" ? "ACTIVE" : "ERROR";
}

/** What to do about a boot volume that no guest may use, by its status in Cinder. */
const UNUSABLE = {
  downloading: (id: string) =>
    `Cinder fills it with an image. Wait until it has another status. If Cinder surely no longer writes to it (the log of its volume service tells), run 'openstack volume set --state reserved ${id}'`,
  error: (id: string) =>
    `Cinder could not fill or mend it. Look into its messages (openstack volume message list). When it is usable again, run 'openstack volume set --state reserved ${id}'`,
} as const;

/**
 * Refuses to set a server to active whose boot volume Cinder fills with an image, or could not fill (409): its guest would be started without a further question to Cinder. So if Cinder
 * does not answer, the call is refused, too (503). A volume that does not exist, or is not in Cinder, is no reason.
 */
export async function refuseUnfilled(
  volumes: Pick<ServerVolumes, "statusInCinder"> | null,
  { action, server }: Pick<ActionTarget, "action" | "server">,
): Promise<void> {
  const root = server.spec.volumes.find(({ isRoot, inCinder }) => isRoot && inCinder);
  if (root === undefined || volumes === null) return;
  const id = idInCinder(root);
  const status = await volumes.statusInCinder(id);
  if (status !== "downloading" && status !== "error") return;
  throw conflict(
    `Cannot '${action}' instance ${server.uuid}: its boot volume ${id} is ${status} in Cinder. ${UNUSABLE[status](id)}. Then reboot the server hard.`,
  );
}

/**
 * Sets the state of a server where an operator knows better. Refused while an operation is under way, because it would not notice the
 * change, and refused (for active) for a server that is on no host.
 */
export async function resetState({ action, cell, server }: ActionTarget, status: ResetStatus): Promise<void> {
  const { uuid } = server;
  const answer = await cell.operations((store) => store.resetStatus([{ serverUuid: uuid, status }]));
  if (answer.kind === "unreachable") throw unavailable(`Cell ${cell.name}, where the server lives, does not answer.`);
  const [outcome] = answer.value;
  switch (outcome?.kind) {
    case "reset":
      return;
    case "busy":
      throw busy({ action, uuid }, outcome.running);
    case "nowhere":
      throw conflict(`Cannot '${action}' instance ${uuid}: it is on no host.`);
    case "gone":
    case undefined:
      throw serverNotFound(uuid);
    default:
      outcome satisfies never;
  }
}
