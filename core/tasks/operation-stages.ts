import type { PowerVerb } from "../agent/power-verbs.ts";
import { assert } from "../assert.ts";
import { HEARD_AT } from "./heard-at.ts";
import { OPERATIONS, type OperationKind } from "./operation-kinds.ts";
import type { Edges, Stage } from "./operation-routes.ts";

/** The stage that is stored when an operation of this kind begins. */
export function firstStage(kind: OperationKind): Stage {
  return OPERATIONS[kind].beginsStoredAs ?? routeStart(kind);
}

/**
 * Converts the stored stage of an operation into a stage of its route. Until a second step is committed, this is the first stage of the
 * route, even if the operation began with another stored stage. A stage of a newer version is returned as it is.
 */
export function stageOnRoute(kind: OperationKind, { stage, step }: { readonly stage: string; readonly step: number }) {
  return step === 1 && stage === firstStage(kind) ? routeStart(kind) : (stage as Stage);
}

function routeStart(kind: OperationKind): Stage {
  return [...OPERATIONS[kind].route.keys()][0] as Stage;
}

/** The target of each answer at this stage of the kind's route; null if the route has no such stage. */
export function edgesOf(kind: OperationKind, stage: string): Edges | null {
  return OPERATIONS[kind].route.get(stage as Stage) ?? null;
}

/** Where an abort leads from this stage, or null if it changes nothing there: it comes too late, or was obeyed before. */
export function abortedTo(kind: OperationKind, stage: Stage): Stage | null {
  const { isMove, route } = OPERATIONS[kind];
  if (!isMove || !HEARD_AT.abort.includes(stage) || stage === "recalling") return null;
  return stage === "handing-over" && route.has("recalling") ? "recalling" : "restoring";
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
