import { ASKS_NOTHING } from "../../cells/console-question.ts";
import { conflict, Fault, unavailable } from "../../http/fault.ts";
import { noteAction } from "../servers/note-action.ts";
import type { ActionCall, ActionDeps } from "./action-call.ts";
import { findTarget, wrongState } from "./action-target.ts";

/**
 * Gives the administrator of an active server's guest another password, and answers when its host has. Nothing stores the password: it goes to the host
 * with a question, and not with an operation, whose record would contain it. Refuses a host whose driver cannot change passwords (501).
 * Source: `set_admin_password` of Nova's compute API, which waits for the host, too, and of its manager.
 */
export async function changePassword(
  deps: ActionDeps,
  { id, call, action, body }: Pick<ActionCall, "id" | "call" | "action" | "body">,
): Promise<{ readonly status: 202 }> {
  const password = body.refuseOthers("adminPass").require("adminPass").password();
  const { server, cell } = await findTarget(deps, call, { id, action });
  const { uuid, host, attemptId } = server;
  if (server.status !== "ACTIVE" || host === null || attemptId === null)
    throw wrongState({ action, uuid }, server.status);
  const answer = await cell.console({ ...ASKS_NOTHING, host, serverUuid: uuid, attemptId, password });
  switch (answer.$case) {
    case "passwordChanged":
      await noteAction(deps, call, { serverUuid: uuid, action: "changePassword", host });
      return { status: 202 };
    case "unavailable":
    // A conductor of an older version reads the console. Its hosts change no passwords.
    case "output":
      throw new Fault(501, "Unable to set password on instance");
    case "absent":
      throw refused(uuid, `instance ${uuid} is not running`);
    case "passwordRefused":
      throw refused(uuid, answer.value);
    default:
      throw unavailable(
        `The host of instance ${uuid} does not answer, and may have changed the password or not: change it again.`,
      );
  }
}

const refused = (uuid: string, reason: string): Fault =>
  conflict(`Failed to set admin password on ${uuid} because ${reason}`);
