import type { PowerVerb } from "../agent/power-verbs.ts";
import { assert } from "../assert.ts";
import {
  type Ask,
  ATTACHING,
  CONFIRMING,
  DETACHING,
  type Edges,
  FROM_NOWHERE,
  KEEPING_SOURCE,
  LEAVING_FENCED,
  LEAVING_SOURCE,
  OFFLOADING,
  POWER,
  RESCUING,
  REVERTING,
  type Route,
  SNAPSHOTTING,
  type Stage,
  UNRESCUING,
} from "./operation-routes.ts";
import type { ServerStatus } from "./server.ts";

/**
 * The status of a server after an operation that succeeded. `as-before`: the status that it had before the operation. `as-before-or-healed`:
 * the same, but a server that was in ERROR becomes ACTIVE.
 */
export type FinalStatus = ServerStatus | "as-before" | "as-before-or-healed";

/** The task state at each stage; `any` is for the stages that are not named. */
type TaskStates = Partial<Record<Stage, string>> & { readonly any: string };

interface OperationTraits {
  /** A move brings the server to a destination that has alternates, and has a migration of its own. */
  readonly isMove: boolean;
  /** The statuses from which the operation may begin. Source: the instance actions of Nova's compute API. */
  readonly allowedFrom: readonly ServerStatus[];
  readonly finalStatus: FinalStatus;
  /** The task states that the Compute API shows while the operation runs. Source: Nova's task_states. */
  readonly taskStates: TaskStates;
}

/** Everything that distinguishes one kind of operation. A route that asks for power needs the verb that the agent is asked for. */
export type OperationDefinition = OperationTraits &
  (
    | { readonly route: Route<Exclude<Ask, "power">>; readonly verb: null }
    | { readonly route: Route; readonly verb: PowerVerb }
  );

const DEFINITIONS = {
  resize: {
    route: KEEPING_SOURCE,
    verb: null,
    isMove: true,
    allowedFrom: ["ACTIVE", "SHUTOFF"],
    finalStatus: "VERIFY_RESIZE",
    taskStates: {
      preparing: "resize_prep",
      "handing-over": "resize_migrating",
      starting: "resize_finish",
      any: "resize_migrated",
    },
  },
  migrate: {
    route: KEEPING_SOURCE,
    verb: null,
    isMove: true,
    allowedFrom: ["ACTIVE", "SHUTOFF"],
    finalStatus: "VERIFY_RESIZE",
    taskStates: {
      preparing: "resize_prep",
      "handing-over": "resize_migrating",
      starting: "resize_finish",
      any: "resize_migrated",
    },
  },
  "live-migrate": {
    route: LEAVING_SOURCE,
    verb: null,
    isMove: true,
    allowedFrom: ["ACTIVE"],
    finalStatus: "as-before",
    taskStates: { any: "migrating" },
  },
  evacuate: {
    route: LEAVING_FENCED,
    verb: null,
    isMove: true,
    allowedFrom: ["ACTIVE", "SHUTOFF", "ERROR"],
    finalStatus: "as-before-or-healed",
    taskStates: { starting: "rebuild_spawning", any: "rebuilding" },
  },
  unshelve: {
    route: FROM_NOWHERE,
    verb: null,
    isMove: true,
    allowedFrom: ["SHELVED_OFFLOADED"],
    finalStatus: "ACTIVE",
    taskStates: { starting: "spawning", any: "unshelving" },
  },
  rebuild: {
    route: LEAVING_SOURCE,
    verb: null,
    isMove: true,
    allowedFrom: ["ACTIVE", "SHUTOFF", "ERROR"],
    finalStatus: "as-before-or-healed",
    taskStates: { starting: "rebuild_spawning", any: "rebuilding" },
  },
  confirm: {
    route: CONFIRMING,
    verb: null,
    isMove: false,
    allowedFrom: ["VERIFY_RESIZE"],
    finalStatus: "as-before",
    taskStates: { any: "resize_confirming" },
  },
  revert: {
    route: REVERTING,
    verb: null,
    isMove: false,
    allowedFrom: ["VERIFY_RESIZE"],
    finalStatus: "as-before",
    taskStates: { any: "resize_reverting" },
  },
  shelve: {
    route: POWER,
    verb: "stop",
    isMove: false,
    allowedFrom: ["ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED"],
    finalStatus: "SHELVED",
    taskStates: { any: "shelving" },
  },
  "shelve-offload": {
    route: OFFLOADING,
    verb: "stop",
    isMove: false,
    allowedFrom: ["ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED", "SHELVED"],
    finalStatus: "SHELVED_OFFLOADED",
    taskStates: { offloading: "shelving_offloading", any: "shelving" },
  },
  stop: {
    route: POWER,
    verb: "stop",
    isMove: false,
    allowedFrom: ["ACTIVE"],
    finalStatus: "SHUTOFF",
    taskStates: { any: "powering-off" },
  },
  start: {
    route: POWER,
    verb: "start",
    isMove: false,
    allowedFrom: ["SHUTOFF", "SHELVED"],
    finalStatus: "ACTIVE",
    taskStates: { any: "powering-on" },
  },
  reboot: {
    route: POWER,
    verb: "reboot",
    isMove: false,
    allowedFrom: ["ACTIVE"],
    finalStatus: "ACTIVE",
    taskStates: { any: "rebooting" },
  },
  "hard-reboot": {
    route: POWER,
    verb: "hard-reboot",
    isMove: false,
    allowedFrom: ["ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED", "ERROR"],
    finalStatus: "ACTIVE",
    taskStates: { any: "rebooting_hard" },
  },
  pause: {
    route: POWER,
    verb: "pause",
    isMove: false,
    allowedFrom: ["ACTIVE"],
    finalStatus: "PAUSED",
    taskStates: { any: "pausing" },
  },
  unpause: {
    route: POWER,
    verb: "unpause",
    isMove: false,
    allowedFrom: ["PAUSED"],
    finalStatus: "ACTIVE",
    taskStates: { any: "unpausing" },
  },
  suspend: {
    route: POWER,
    verb: "suspend",
    isMove: false,
    allowedFrom: ["ACTIVE"],
    finalStatus: "SUSPENDED",
    taskStates: { any: "suspending" },
  },
  resume: {
    route: POWER,
    verb: "resume",
    isMove: false,
    allowedFrom: ["SUSPENDED"],
    finalStatus: "ACTIVE",
    taskStates: { any: "resuming" },
  },
  rescue: {
    route: RESCUING,
    verb: null,
    isMove: false,
    allowedFrom: ["ACTIVE", "SHUTOFF", "ERROR"],
    finalStatus: "RESCUE",
    taskStates: { any: "rescuing" },
  },
  unrescue: {
    route: UNRESCUING,
    verb: "unrescue",
    isMove: false,
    allowedFrom: ["RESCUE"],
    finalStatus: "ACTIVE",
    taskStates: { any: "unrescuing" },
  },
  snapshot: {
    route: SNAPSHOTTING,
    verb: null,
    isMove: false,
    allowedFrom: ["ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED"],
    finalStatus: "as-before",
    taskStates: { any: "image_snapshot" },
  },
  backup: {
    route: SNAPSHOTTING,
    verb: null,
    isMove: false,
    allowedFrom: ["ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED"],
    finalStatus: "as-before",
    taskStates: { any: "image_backup" },
  },
  "attach-volume": {
    route: ATTACHING,
    verb: null,
    isMove: false,
    allowedFrom: ["ACTIVE", "PAUSED", "SHUTOFF"],
    finalStatus: "as-before",
    taskStates: { any: "attaching_volume" },
  },
  "detach-volume": {
    route: DETACHING,
    verb: null,
    isMove: false,
    allowedFrom: ["ACTIVE", "PAUSED", "SHUTOFF"],
    finalStatus: "as-before",
    taskStates: { any: "detaching_volume" },
  },
} satisfies Readonly<Record<string, OperationDefinition>>;

/** The operations that can be done to a server that was built. */
export type OperationKind = keyof typeof DEFINITIONS;
export type MoveKind = {
  [Kind in OperationKind]: (typeof DEFINITIONS)[Kind]["isMove"] extends true ? Kind : never;
}[OperationKind];

/** One entry for each kind of operation, which is the only place where the kind is defined. */
export const OPERATIONS: Readonly<Record<OperationKind, OperationDefinition>> = DEFINITIONS;
export const OPERATION_KINDS = Object.keys(OPERATIONS) as readonly OperationKind[];

export function isMove(kind: OperationKind): kind is MoveKind {
  return OPERATIONS[kind].isMove;
}

/** The kind with this name; null if this version does not know it. */
export function operationKind(name: string): OperationKind | null {
  return OPERATION_KINDS.find((kind) => kind === name) ?? null;
}

/**
 * The stage that an operation of this kind is stored with when it begins. A confirmation is stored at the stage that older versions store, so
 * that their conductors know it; a conductor of this version asks the destination first (`beginOperation`).
 */
export function firstStage(kind: OperationKind): Stage {
  return kind === "confirm" ? "cleaning" : ([...OPERATIONS[kind].route.keys()][0] as Stage);
}

/** The target of each answer at this stage of the kind's route; null if the route has no such stage. */
export function edgesOf(kind: OperationKind, stage: string): Edges | null {
  return OPERATIONS[kind].route.get(stage as Stage) ?? null;
}

/** The task state that the Compute API shows at this stage. */
export function taskStateOf(kind: OperationKind, stage: Stage): string {
  const { taskStates } = OPERATIONS[kind];
  return taskStates[stage] ?? taskStates.any;
}

/** The verb for a stage that asks for power. Asserts that the kind's route has such a stage. */
export function verbOf(kind: OperationKind): PowerVerb {
  const { verb } = OPERATIONS[kind];
  assert(verb !== null, `the route of a ${kind} asks for no power verb`);
  return verb;
}
