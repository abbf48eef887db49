import type { ServerLock } from "../../../../core/tasks/user-changes.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import { type KnownCall, mayDo } from "../../http/call.ts";
import { conflict, Fault } from "../../http/fault.ts";
import type { RequestsPort } from "../../ports.ts";
import type { ActionBody } from "../server-actions/action-body.ts";
import { withAction } from "./note-action.ts";
import { type RequestFinder, serverNotFound } from "./request-finder.ts";

/** The first microversion in which a lock has a reason. */
const REASON_FROM_MINOR = 73;
const REASON_CHARACTERS_MAX = 255;

const OVERRIDE = "os-lock-server:unlock:unlock_override";

/** Actions that a locked server allows to everybody, as in Nova. */
const ALLOWED_WHEN_LOCKED: ReadonlySet<string> = new Set([
  ...["update", "update tag", "update tags", "delete tag", "delete tags"],
  ...["createImage", "createBackup", "os-getConsoleOutput", "addSecurityGroup", "removeSecurityGroup"],
]);

/** Refuses a call that changes a locked server. Admins may change it. Source: `check_instance_lock` of Nova's compute API. */
export function refuseLocked(
  server: { readonly uuid: string; readonly lock: ServerLock | null },
  action: string,
  call: KnownCall,
): void {
  if (server.lock === null || call.identity.isAdmin || ALLOWED_WHEN_LOCKED.has(action)) return;
  throw conflict(`Instance ${server.uuid} is locked`);
}

interface LockDeps {
  readonly store: Pick<RequestsPort, "changeServer">;
  readonly finder: RequestFinder;
  readonly clock: Pick<Clock, "now">;
}

/** Reads the reason of a lock, which is null when none is given or the microversion has none. */
export function readLockReason(body: ActionBody, minor: number): string | null {
  if (minor < REASON_FROM_MINOR) return null;
  const reason = body.refuseOthers("locked_reason").raw("locked_reason");
  if (reason === undefined) return null;
  if (typeof reason !== "string" || reason.length < 1 || reason.length > REASON_CHARACTERS_MAX)
    throw new Fault(
      400,
      `Invalid input for field/attribute locked_reason. It is not 1 to ${REASON_CHARACTERS_MAX} characters.`,
    );
  return reason;
}

/** Locks a server. A member of its project leaves an existing lock unchanged, and an admin of another project locks it again. */
export async function lockServer(deps: LockDeps, call: KnownCall, id: string, reason: string | null): Promise<void> {
  const { serverUuid, isOwner } = await find(deps, call, id);
  await deps.store.changeServer(serverUuid, ({ changes }) =>
    changes?.lock != null && isOwner
      ? null
      : {
          ...withAction(changes, "lock", { call, clock: deps.clock, host: null }),
          lock: { by: isOwner ? "owner" : "admin", reason },
        },
  );
}

/** Unlocks a server. A lock of an admin can be taken away by those alone whom the policy lets override it. */
export async function unlockServer(deps: LockDeps, call: KnownCall, id: string): Promise<void> {
  const { serverUuid, isOwner, projectId } = await find(deps, call, id);
  let isRefused = false;
  await deps.store.changeServer(serverUuid, ({ changes }) => {
    const lock = changes?.lock ?? null;
    isRefused = lock !== null && lock.by !== (isOwner ? "owner" : "admin") && !mayDo(call, OVERRIDE, { projectId });
    return lock === null || isRefused
      ? null
      : { ...withAction(changes, "unlock", { call, clock: deps.clock, host: null }), lock: null };
  });
  if (isRefused) throw new Fault(403, `Policy doesn't allow os_compute_api:${OVERRIDE} to be performed.`);
}

async function find({ finder }: LockDeps, call: KnownCall, id: string) {
  const record = await finder.find(id, call);
  if (record === null || record.state === "deleted") throw serverNotFound(id);
  return {
    serverUuid: record.serverUuid,
    isOwner: record.spec.projectId === call.identity.projectId,
    projectId: record.spec.projectId,
  };
}
