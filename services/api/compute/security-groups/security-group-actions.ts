import { badRequest, notFound } from "../../http/fault.ts";
import type { SecurityGroupDesk } from "../../network/security-groups/security-group-desk.ts";
import type { ActionCall, ActionResult } from "../server-actions/action-call.ts";
import type { RequestFinder } from "../servers/request-finder.ts";

interface Deps {
  readonly finder: RequestFinder;
  /** Null where there are no security groups. */
  readonly securityGroups: SecurityGroupDesk | null;
}

/** Puts a server into a security group, which the body names by its name or id. Like Nova, it does so in every state of the server. */
export async function addSecurityGroup(deps: Deps, one: ActionCall): Promise<ActionResult> {
  const { desk, name, serverUuid } = await readAction(deps, one);
  await desk.addToServer(one.call, serverUuid, name);
  return { status: 202 };
}

export async function removeSecurityGroup(deps: Deps, one: ActionCall): Promise<ActionResult> {
  const { desk, name, serverUuid } = await readAction(deps, one);
  await desk.removeFromServer(one.call, serverUuid, name);
  return { status: 202 };
}

async function readAction({ finder, securityGroups }: Deps, { id, call, body }: ActionCall) {
  const name = body.refuseOthers("name").require("name").text("name") ?? "";
  if (name.trim() === "") throw badRequest("Security group name cannot be empty");
  const record = await finder.findPresent(id, call);
  if (securityGroups === null) throw notFound(`Security group ${name.slice(0, 255)} is not found.`);
  return { desk: securityGroups, name, serverUuid: record.serverUuid };
}
