import type { KnownCall } from "../../http/call.ts";
import type { RequestFinder } from "../servers/request-finder.ts";
import { refuseLocked } from "../servers/server-lock.ts";

/** Accepts the action and does nothing, as Nova's driver for KVM does: a running guest cannot be told about its network. */
export async function injectNetworkInfo(
  { finder }: { readonly finder: RequestFinder },
  { id, call, action }: { readonly id: string; readonly call: KnownCall; readonly action: string },
): Promise<{ readonly status: 202 }> {
  const record = await finder.findPresent(id, call);
  refuseLocked({ uuid: record.serverUuid, lock: record.changes?.lock ?? null }, action, call);
  return { status: 202 };
}
