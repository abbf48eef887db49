import { USER_ACTIONS_MAX, type UserAction, type UserChanges } from "../../../../core/tasks/user-changes.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { KnownCall } from "../../http/call.ts";
import type { RequestsPort } from "../../ports.ts";

/** Returns the changes with one more action, and without the oldest when there are too many. */
export function withAction(
  changes: UserChanges | null,
  action: UserAction["action"],
  {
    call,
    clock,
    host,
    ended,
  }: {
    readonly call: KnownCall;
    readonly clock: Pick<Clock, "now">;
    readonly host: string | null;
    readonly ended?: UserAction["ended"];
  },
): UserChanges {
  const { requestId, identity } = call;
  const { userId, projectId } = identity;
  const noted: UserAction = {
    action,
    requestId,
    userId,
    projectId,
    host,
    atMs: clock.now(),
    ...(ended !== undefined && { ended }),
  };
  return { ...changes, actions: [...(changes?.actions ?? []), noted].slice(-USER_ACTIONS_MAX) };
}

/** Records an action that was done, or with `ended: null` is under way, and needed no operation, so that the server's actions list it. */
export async function noteAction(
  { store, clock }: { readonly store: Pick<RequestsPort, "changeServer">; readonly clock: Pick<Clock, "now"> },
  call: KnownCall,
  {
    serverUuid,
    action,
    ...noted
  }: {
    readonly serverUuid: string;
    readonly action: UserAction["action"];
    readonly host: string | null;
    readonly ended?: UserAction["ended"];
  },
): Promise<void> {
  await store.changeServer(serverUuid, ({ changes }) => withAction(changes, action, { call, clock, ...noted }));
}
