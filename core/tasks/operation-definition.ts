import type { PowerVerb } from "../agent/power-verbs.ts";
import type { Ask, Route } from "./operation-routes.ts";
import type { FinalStatus, OperationTraits, TaskStates } from "./operation-traits.ts";
import type { ServerStatus } from "./server.ts";

/** The course of an operation: from which statuses to which, and what is shown meanwhile. */
export interface OperationCourse {
  /** The statuses from which the operation may begin. Source: the instance actions of Nova's compute API. */
  readonly allowedFrom: readonly ServerStatus[];
  readonly finalStatus: FinalStatus;
  /** The task states that the Compute API shows while the operation runs. Source: Nova's task_states. */
  readonly taskStates: TaskStates;
}

/** Everything that distinguishes one kind of operation. A route that asks for power needs the verb that the agent is asked for. */
export type OperationDefinition = OperationTraits &
  OperationCourse &
  (
    | { readonly route: Route<Exclude<Ask, "power">>; readonly verb: null }
    | { readonly route: Route; readonly verb: PowerVerb }
  );
