import type { OperationCourse, OperationDefinition } from "./operation-definition.ts";
import {
  CONFIRMING,
  FROM_NOWHERE,
  IMAGING,
  KEEPING_SOURCE,
  LEAVING_FENCED,
  LEAVING_SOURCE,
  LEAVING_SOURCE_LIVE,
  OFFLOADING,
  POWER,
  REIMAGING,
  RESCUING,
  REVERTING,
  SNAPSHOTTING,
  UNRESCUING,
} from "./operation-routes.ts";
import {
  CONFIRMING_MOVE,
  IN_PLACE,
  LEAVING_HOST,
  LEAVING_IMAGE,
  MOVING,
  MOVING_FROM_FENCED,
  MOVING_FROM_NOWHERE,
  MOVING_LIVE,
  MOVING_UNCONFIRMED,
  REVERTING_MOVE,
} from "./operation-traits.ts";
import { VOLUME_KINDS } from "./volume-kinds.ts";

/** The course of every move that waits for its confirmation. */
const RESIZES = {
  verb: null,
  allowedFrom: ["ACTIVE", "SHUTOFF"],
  finalStatus: "VERIFY_RESIZE",
  taskStates: {
    preparing: "resize_prep",
    "handing-over": "resize_migrating",
    starting: "resize_finish",
    any: "resize_migrated",
  },
} as const satisfies OperationCourse & { readonly verb: null };

const DEFINITIONS = {
  resize: { ...MOVING_UNCONFIRMED, route: KEEPING_SOURCE, ...RESIZES },
  migrate: { ...MOVING_UNCONFIRMED, route: KEEPING_SOURCE, ...RESIZES },
  "live-migrate": {
    ...MOVING_LIVE,
    route: LEAVING_SOURCE_LIVE,
    verb: null,
    allowedFrom: ["ACTIVE"],
    finalStatus: "as-before",
    taskStates: { any: "migrating" },
  },
  // A kind of its own, so that conductors of versions that would let the guest run at its destination do not take it. Agents of such versions make an empty guest
  // for it, to which no conductor lets a guest be handed over.
  "live-migrate-paused": {
    ...MOVING_LIVE,
    route: LEAVING_SOURCE_LIVE,
    verb: null,
    allowedFrom: ["PAUSED"],
    finalStatus: "as-before",
    taskStates: { any: "migrating" },
  },
  evacuate: {
    ...MOVING_FROM_FENCED,
    route: LEAVING_FENCED,
    verb: null,
    allowedFrom: ["ACTIVE", "SHUTOFF", "ERROR"],
    finalStatus: "as-before-or-healed",
    taskStates: { starting: "rebuild_spawning", any: "rebuilding" },
  },
  unshelve: {
    ...MOVING_FROM_NOWHERE,
    route: FROM_NOWHERE,
    verb: null,
    allowedFrom: ["SHELVED_OFFLOADED"],
    finalStatus: "ACTIVE",
    taskStates: { starting: "spawning", any: "unshelving" },
  },
  rebuild: {
    ...MOVING,
    route: LEAVING_SOURCE,
    verb: null,
    allowedFrom: ["ACTIVE", "SHUTOFF", "ERROR"],
    finalStatus: "as-before-or-healed",
    taskStates: { starting: "rebuild_spawning", any: "rebuilding" },
  },
  // A kind of its own, so that conductors that would start the guest without asking Cinder do not take it.
  reimage: {
    ...MOVING,
    route: REIMAGING,
    verb: null,
    allowedFrom: ["ACTIVE", "SHUTOFF", "ERROR"],
    finalStatus: "as-before-or-healed",
    taskStates: { starting: "rebuild_spawning", any: "rebuilding" },
  },
  confirm: {
    ...CONFIRMING_MOVE,
    route: CONFIRMING,
    verb: null,
    allowedFrom: ["VERIFY_RESIZE"],
    finalStatus: "as-before",
    taskStates: { any: "resize_confirming" },
  },
  revert: {
    ...REVERTING_MOVE,
    route: REVERTING,
    verb: null,
    allowedFrom: ["VERIFY_RESIZE"],
    finalStatus: "as-before",
    taskStates: { any: "resize_reverting" },
  },
  shelve: {
    ...IN_PLACE,
    route: POWER,
    verb: "stop",
    allowedFrom: ["ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED"],
    finalStatus: "SHELVED",
    taskStates: { any: "shelving" },
  },
  "shelve-offload": {
    ...LEAVING_HOST,
    route: OFFLOADING,
    verb: "stop",
    allowedFrom: ["ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED", "SHELVED"],
    finalStatus: "SHELVED_OFFLOADED",
    taskStates: { offloading: "shelving_offloading", any: "shelving" },
  },
  "shelve-to-image": {
    ...LEAVING_IMAGE,
    route: IMAGING,
    verb: "stop",
    allowedFrom: ["ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED", "SHELVED"],
    finalStatus: "SHELVED_OFFLOADED",
    taskStates: { snapshotting: "shelving_image_uploading", offloading: "shelving_offloading", any: "shelving" },
  },
  stop: {
    ...IN_PLACE,
    route: POWER,
    verb: "stop",
    allowedFrom: ["ACTIVE"],
    finalStatus: "SHUTOFF",
    taskStates: { any: "powering-off" },
  },
  start: {
    ...IN_PLACE,
    route: POWER,
    verb: "start",
    allowedFrom: ["SHUTOFF", "SHELVED"],
    finalStatus: "ACTIVE",
    taskStates: { any: "powering-on" },
  },
  reboot: {
    ...IN_PLACE,
    route: POWER,
    verb: "reboot",
    allowedFrom: ["ACTIVE"],
    finalStatus: "ACTIVE",
    taskStates: { any: "rebooting" },
  },
  "hard-reboot": {
    ...IN_PLACE,
    route: POWER,
    verb: "hard-reboot",
    allowedFrom: ["ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED", "ERROR"],
    finalStatus: "ACTIVE",
    taskStates: { any: "rebooting_hard" },
  },
  pause: {
    ...IN_PLACE,
    route: POWER,
    verb: "pause",
    allowedFrom: ["ACTIVE"],
    finalStatus: "PAUSED",
    taskStates: { any: "pausing" },
  },
  unpause: {
    ...IN_PLACE,
    route: POWER,
    verb: "unpause",
    allowedFrom: ["PAUSED"],
    finalStatus: "ACTIVE",
    taskStates: { any: "unpausing" },
  },
  suspend: {
    ...IN_PLACE,
    route: POWER,
    verb: "suspend",
    allowedFrom: ["ACTIVE"],
    finalStatus: "SUSPENDED",
    taskStates: { any: "suspending" },
  },
  resume: {
    ...IN_PLACE,
    route: POWER,
    verb: "resume",
    allowedFrom: ["SUSPENDED"],
    finalStatus: "ACTIVE",
    taskStates: { any: "resuming" },
  },
  rescue: {
    ...IN_PLACE,
    route: RESCUING,
    verb: null,
    allowedFrom: ["ACTIVE", "SHUTOFF", "ERROR"],
    finalStatus: "RESCUE",
    taskStates: { any: "rescuing" },
  },
  unrescue: {
    ...IN_PLACE,
    route: UNRESCUING,
    verb: "unrescue",
    allowedFrom: ["RESCUE"],
    finalStatus: "ACTIVE",
    taskStates: { any: "unrescuing" },
  },
  "crash-dump": {
    ...IN_PLACE,
    route: POWER,
    verb: "inject-nmi",
    // Nova allows it in ERROR and VERIFY_RESIZE, too. A server in ERROR may have no guest, and an unconfirmed move comes first.
    allowedFrom: ["ACTIVE", "PAUSED", "RESCUE"],
    finalStatus: "as-before",
    taskStates: { any: "triggering_crash_dump" },
  },
  snapshot: {
    ...IN_PLACE,
    route: SNAPSHOTTING,
    verb: null,
    allowedFrom: ["ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED"],
    finalStatus: "as-before",
    taskStates: { any: "image_snapshot" },
  },
  backup: {
    ...IN_PLACE,
    route: SNAPSHOTTING,
    verb: null,
    allowedFrom: ["ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED"],
    finalStatus: "as-before",
    taskStates: { any: "image_backup" },
  },
  "soft-delete": {
    ...IN_PLACE,
    route: POWER,
    verb: "stop",
    // A resize is confirmed first, and a rescue ended.
    allowedFrom: ["ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED", "SHELVED", "ERROR"],
    finalStatus: "SOFT_DELETED",
    taskStates: { any: "soft-deleting" },
  },
  restore: {
    ...IN_PLACE,
    route: POWER,
    verb: "start",
    allowedFrom: ["SOFT_DELETED"],
    finalStatus: "ACTIVE",
    taskStates: { any: "restoring" },
  },
  ...VOLUME_KINDS,
} satisfies Readonly<Record<string, OperationDefinition>>;

/** The operations that can be done to a server that was built. */
export type OperationKind = keyof typeof DEFINITIONS;
export type MoveKind = {
  [Kind in OperationKind]: (typeof DEFINITIONS)[Kind]["isMove"] extends true ? Kind : never;
}[OperationKind];

/** One entry for each kind of operation, which is the only place where the kind is defined. */
export const OPERATIONS: Readonly<Record<OperationKind, OperationDefinition>> = DEFINITIONS;
export const OPERATION_KINDS = Object.keys(OPERATIONS) as readonly OperationKind[];

/** Whether the server's guest is moved with its memory. */
export function isLiveMove(kind: OperationKind): boolean {
  return kind === "live-migrate" || kind === "live-migrate-paused";
}

/** Whether the destination's guest gets the content of the source's one, so that it may become the server's only copy. */
export const givesContent = (kind: OperationKind): boolean =>
  isLiveMove(kind) || kind === "resize" || kind === "migrate";

/** Whether an event of a neighbour about the destination's guest is kept until the operation ends: Neutron's about a port, or Cinder's about a volume. */
export function hearsNeighbours(kind: OperationKind): boolean {
  return isLiveMove(kind) || kind === "reimage";
}

export function isMove(kind: OperationKind): kind is MoveKind {
  return OPERATIONS[kind].isMove;
}

/** Whether an operation of this kind is about a move that waits for its confirmation: ends the wait, or is done meanwhile. */
export function isAboutWaitingMove(kind: OperationKind): boolean {
  const { confirmation } = OPERATIONS[kind];
  return confirmation === "ended" || confirmation === "unchanged";
}

/** The kind with this name; null if this version does not know it. */
export function operationKind(name: string): OperationKind | null {
  return OPERATION_KINDS.find((kind) => kind === name) ?? null;
}
