import { USER_ACTIONS_MAX, type UserAction, type UserChanges } from "../../../../core/tasks/user-changes.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { KnownCall } from "../../http/call.ts";
import type { RequestsPort } from "../../ports.ts";

/** Returns the changes with one more action, and without the oldest when there are too many. */
export function withAction(
  changes: UserChanges | null,
  action: UserAction["action"],
  { call, clock, host }: { readonly call: KnownCall; readonly clock: Pick<Clock, "now">; readonly host: string | null },
): UserChanges {
  const { requestId, identity } = call;
  const { userId, projectId } = identity;
  const noted: UserAction = { action, requestId, userId, projectId, host, atMs: clock.now() };
  return { ...changes, actions: [...(changes?.actions ?? []), noted].slice(-USER_ACTIONS_MAX) };
}

/** Records an action that was done and needed no operation, so that the server's actions list it. */
export async function noteAction(
  { store, clock }: { readonly store: Pick<RequestsPort, "changeServer">; readonly clock: Pick<Clock, "now"> },
  call: KnownCall,
  {
    serverUuid,
    action,
    host,
  }: { readonly serverUuid: string; readonly action: UserAction["action"]; readonly host: string | null },
): Promise<void> {
  await store.changeServer(serverUuid, ({ changes }) => withAction(changes, action, { call, clock, host }));
}
