import { conflict, invalidField, unavailable } from "../../http/fault.ts";
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
