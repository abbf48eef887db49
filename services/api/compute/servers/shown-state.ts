import { SERVER_STATUSES, type Server, type ServerStatus } from "../../../../core/tasks/server.ts";
import type { KnownServer } from "../../cells/hydrate-servers.ts";

/** Nova's names of the states between two operations. */
export const VM_STATES: Readonly<Record<ServerStatus, string>> = {
  BUILD: "building",
  ACTIVE: "active",
  ERROR: "error",
  DELETED: "deleted",
  SHUTOFF: "stopped",
  PAUSED: "paused",
  SUSPENDED: "suspended",
  RESCUE: "rescued",
  VERIFY_RESIZE: "resized",
  SHELVED: "shelved",
  SHELVED_OFFLOADED: "shelved_offloaded",
  SOFT_DELETED: "soft-delete",
};

const RESIZING = {
  resize_prep: "RESIZE",
  resize_migrating: "RESIZE",
  resize_migrated: "RESIZE",
  resize_finish: "RESIZE",
};
const REBUILDING = { rebuilding: "REBUILD", rebuild_spawning: "REBUILD" };

/** Statuses that are shown while an operation is under way; for other operations, the state's own status is shown. Source: Nova's api. */
const STATUS_UNDER_WAY: Partial<Record<ServerStatus, Readonly<Record<string, string>>>> = {
  ACTIVE: {
    ...RESIZING,
    ...REBUILDING,
    rebooting: "REBOOT",
    rebooting_hard: "HARD_REBOOT",
    migrating: "MIGRATING",
  },
  SHUTOFF: { ...RESIZING, ...REBUILDING },
  VERIFY_RESIZE: { resize_reverting: "REVERT_RESIZE" },
  PAUSED: { migrating: "MIGRATING" },
  ERROR: REBUILDING,
};

/** Returns the shown status, which is UNKNOWN while the cell does not answer. */
export function shownStatus({ server, unreachable }: KnownServer): string {
  if (unreachable) return "UNKNOWN";
  const underWay = server.taskState === null ? undefined : STATUS_UNDER_WAY[server.status]?.[server.taskState];
  return underWay ?? server.status;
}

/** Nova has no task states for attaching, detaching, extending and replacing volumes. */
const HIDDEN_TASK_STATES: ReadonlySet<string | null> = new Set([
  ...["attaching_volume", "detaching_volume", "extending_volume", "swapping_volume", "settling_volume"],
]);

/** Returns the task state that clients see. */
export function shownTaskState({ taskState }: Pick<Server, "taskState">): string | null {
  return HIDDEN_TASK_STATES.has(taskState) ? null : taskState;
}

const POWER = { none: 0, running: 1, paused: 3, off: 4 } as const;

/** Returns the power state that Nova's libvirt driver would report for the guest. */
export function powerStateOf({ server, unreachable }: KnownServer): number {
  return unreachable ? POWER.none : powerIn(server.status);
}

function powerIn(status: ServerStatus): number {
  switch (status) {
    case "ACTIVE":
    case "VERIFY_RESIZE":
    case "RESCUE":
      return POWER.running;
    case "PAUSED":
      return POWER.paused;
    case "SHUTOFF":
    // The guest's memory is saved and its process ends, so libvirt reports it as shut off.
    case "SUSPENDED":
    case "SHELVED":
    case "SHELVED_OFFLOADED":
    case "SOFT_DELETED":
      return POWER.off;
    case "BUILD":
    case "ERROR":
    case "DELETED":
      return POWER.none;
    default:
      return status satisfies never;
  }
}

/** Returns the statuses of the servers that have this `vm_state` while their cells answer. None for an unknown state. */
export function statusesInVmState(vmState: string): readonly ServerStatus[] {
  return SERVER_STATUSES.filter((status) => VM_STATES[status] === vmState);
}

/**
 * Returns the statuses of all servers that have this power state. None for 0, which servers of silent cells have whatever their status is, and for
 * an unknown power state.
 */
export function statusesInPowerState(power: string): readonly ServerStatus[] {
  if (power === String(POWER.none)) return [];
  return SERVER_STATUSES.filter((status) => String(powerIn(status)) === power);
}

/** Returns the server with the task state of an operation that is about to begin. */
export function withTaskState(known: KnownServer, taskState: string): KnownServer {
  const server: Server = { ...known.server, taskState };
  return { ...known, server };
}
