import type { KnownCall } from "../../http/call.ts";
import { Fault } from "../../http/fault.ts";
import type { RequestFinder } from "../servers/request-finder.ts";
import { refuseLocked } from "../servers/server-lock.ts";
import type { ActionBody } from "./action-body.ts";
import { findTarget, wrongState } from "./action-target.ts";

interface SmallAction {
  readonly id: string;
  readonly call: KnownCall;
  readonly action: string;
  readonly body: ActionBody;
}
type TargetDeps = Parameters<typeof findTarget>[0];

/** Refuses a password for a running guest, as Nova does where the driver cannot set one: no driver has an agent inside of its guests. */
export async function changePassword(deps: TargetDeps, { id, call, action, body }: SmallAction): Promise<never> {
  body.refuseOthers("adminPass").require("adminPass").password();
  const { server } = await findTarget(deps, call, { id, action });
  if (server.status !== "ACTIVE") throw wrongState({ action, uuid: server.uuid }, server.status);
  throw new Fault(501, "Unable to set password on instance");
}

/** Accepts the action and does nothing, as Nova's driver for KVM does: a running guest cannot be told about its network. */
export async function injectNetworkInfo(
  { finder }: { readonly finder: RequestFinder },
  { id, call, action }: SmallAction,
): Promise<{ readonly status: 202 }> {
  const record = await finder.findPresent(id, call);
  refuseLocked({ uuid: record.serverUuid, lock: record.changes?.lock ?? null }, action, call);
  return { status: 202 };
}
