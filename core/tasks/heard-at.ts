import type { Stage } from "./operation-routes.ts";
import type { OperationSignal } from "./operation-step.ts";

/**
 * The stages at which an operation accepts a signal. An abort is accepted while the server is still at home on its source, and repeated ones while it is obeyed (`recalling`); a copy can be forced
 * while it is being made. An operation that was aborted stays aborted.
 */
export const HEARD_AT: Readonly<Record<OperationSignal, readonly Stage[]>> = {
  abort: ["preparing", "handing-over", "recalling"],
  force: ["handing-over"],
};
