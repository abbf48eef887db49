import { OPERATIONS, type OperationKind, operationKind } from "../../../../core/tasks/operation-kinds.ts";
import type { TaskRecord } from "../../../../core/tasks/task-record.ts";
import type { UserAction } from "../../../../core/tasks/user-changes.ts";
import type { Operation } from "../../../../proto/gen/berth/cell.ts";
import type { InstanceAction } from "./action-event.ts";

type Names = readonly [action: string, event: string];

/** Nova's names of the action and of its event, by kind of operation. Null for a move that a scheduler has a record of, and for what Nova shows to nobody. */
const NAMES: Readonly<Record<OperationKind, Names | null>> = {
  resize: null,
  migrate: null,
  "live-migrate": null,
  "live-migrate-paused": null,
  evacuate: null,
  unshelve: null,
  rebuild: ["rebuild", "compute_rebuild_instance"],
  reimage: ["rebuild", "compute_rebuild_instance"],
  confirm: ["confirmResize", "compute_confirm_resize"],
  revert: ["revertResize", "compute_revert_resize"],
  shelve: ["shelve", "compute_shelve_instance"],
  "shelve-offload": ["shelveOffload", "compute_shelve_offload_instance"],
  "shelve-to-image": ["shelveOffload", "compute_shelve_offload_instance"],
  stop: ["stop", "compute_stop_instance"],
  start: ["start", "compute_start_instance"],
  reboot: ["reboot", "compute_reboot_instance"],
  "hard-reboot": ["reboot", "compute_reboot_instance"],
  pause: ["pause", "compute_pause_instance"],
  unpause: ["unpause", "compute_unpause_instance"],
  suspend: ["suspend", "compute_suspend_instance"],
  resume: ["resume", "compute_resume_instance"],
  rescue: ["rescue", "compute_rescue_instance"],
  unrescue: ["unrescue", "compute_unrescue_instance"],
  "crash-dump": ["trigger_crash_dump", "compute_trigger_crash_dump"],
  snapshot: ["createImage", "compute_snapshot_instance"],
  backup: ["createBackup", "compute_backup_instance"],
  "soft-delete": ["delete", "compute_soft_delete_instance"],
  restore: ["restore", "compute_restore_instance"],
  "attach-volume": ["attach_volume", "compute_attach_volume"],
  "detach-volume": ["detach_volume", "compute_detach_volume"],
  "attach-volume-unconfirmed": ["attach_volume", "compute_attach_volume"],
  "detach-volume-unconfirmed": ["detach_volume", "compute_detach_volume"],
  // Nova's api does these itself.
  "attach-volume-offloaded": ["attach_volume", "api_attach_volume"],
  "detach-volume-offloaded": ["detach_volume", "api_detach_volume"],
  "extend-volume": ["extend_volume", "compute_extend_volume"],
  "swap-volume": ["swap_volume", "compute_swap_volume"],
  "swap-volume-unconfirmed": ["swap_volume", "compute_swap_volume"],
  "snapshot-volume": null,
  "resume-snapshot": null,
  "merge-volume": null,
  // Nova has nothing of the kind.
  "reconnect-volume-unconfirmed": ["settle_volume", "compute_settle_volume"],
  "settle-volume": ["settle_volume", "compute_settle_volume"],
  "settle-volume-own": ["settle_volume", "compute_settle_volume"],
  "settle-volume-other": ["settle_volume", "compute_settle_volume"],
};
/** A server that is shelved on its host is unshelved by a start. */
const UNSHELVE: Names = ["unshelve", "compute_unshelve_instance"];

/** Returns the operations of a server that no scheduler has a record of, as actions, newest first. */
export function operationActionsOf(tasks: readonly TaskRecord[]): InstanceAction[] {
  return tasks.toReversed().flatMap((record) => actionOf(record) ?? []);
}

function actionOf(record: TaskRecord): InstanceAction | null {
  const { task, createdAtMs, endedAtMs, outcome, reason } = record;
  const names = namesOf(record);
  if (names === null || task.work?.$case !== "operate") return null;
  const failed = outcome !== null && outcome !== "success";
  const [action, event] = names;
  return {
    action,
    requestId: task.askedBy?.requestId ?? "",
    ...(task.askedBy !== undefined && { askedBy: task.askedBy }),
    startedAtMs: createdAtMs,
    updatedAtMs: endedAtMs ?? record.stages.at(-1)?.atMs ?? createdAtMs,
    message: failed ? "Error" : null,
    events: [
      {
        event,
        host: hostOf(task.work.value),
        startedAtMs: createdAtMs,
        finishedAtMs: endedAtMs,
        result: outcome === null ? null : failed ? "Error" : "Success",
        details: reason === "" ? null : reason,
      },
    ],
  };
}

/** The host that does the work. While a move waits for its confirmation, that is the host to which it has brought the server, unless the wait ends. */
function hostOf({ kind: name, source, destination }: Operation): string | null {
  const kind = operationKind(name);
  const isAtDestination = kind !== null && OPERATIONS[kind].confirmation === "unchanged";
  return (isAtDestination ? destination : (source ?? destination))?.host ?? null;
}

function namesOf({ task: { work } }: TaskRecord): Names | null {
  const kind = work?.$case === "operate" ? operationKind(work.value.kind) : null;
  if (work?.$case !== "operate" || kind === null) return null;
  const wasShelved = work.value.statusBefore === "SHELVED";
  if (kind === "start" && wasShelved) return UNSHELVE;
  // Only a shelved server can be offloaded in Nova, so a server that was not shelved yet was shelved and offloaded in one.
  return OPERATIONS[kind].allocation === "offloaded" && !wasShelved ? NAMES.shelve : NAMES[kind];
}

/** Nova's names of the events of actions that need no operation. */
const EVENTS: Readonly<Record<UserAction["action"], string>> = {
  lock: "api_lock",
  unlock: "api_unlock",
  attach_interface: "compute_attach_interface",
  detach_interface: "compute_detach_interface",
  resetState: "api_reset_state",
  changePassword: "compute_set_admin_password",
  createImage: "api_snapshot_instance",
};

/** Returns the actions on a server that needed no operation, newest first. */
export function userActionsOf(actions: readonly UserAction[]): InstanceAction[] {
  return actions.toReversed().map(({ action, requestId, userId, projectId, atMs, host, ended: noted }) => {
    const ended = noted === undefined ? { atMs, error: null } : noted;
    const error = ended?.error ?? null;
    const result = ended === null ? null : error === null ? "Success" : "Error";
    return {
      ...{ action, requestId, askedBy: { userId, projectId }, startedAtMs: atMs, updatedAtMs: ended?.atMs ?? atMs },
      message: error === null ? null : "Error",
      events: [
        {
          ...{ event: EVENTS[action], host, startedAtMs: atMs, finishedAtMs: ended?.atMs ?? null },
          ...{ result, details: error },
        },
      ],
    };
  });
}
