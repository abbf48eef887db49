import { badRequest, type Fault, malformedAction, notFound, unknownAction } from "../../http/fault.ts";
import { gone } from "../removed/removed-routes.ts";
import { ActionBody } from "./action-body.ts";
import type { ActionCall, ActionDeps, ActionOptions, ActionResult } from "./action-call.ts";
import { REMOTE_CONSOLE_FACTS, SERVER_ACTIONS } from "./server-actions.ts";

/** The answers to actions that Nova has removed for every microversion, before it looks for the server. */
const REMOVED_ACTIONS: ReadonlyMap<string, (minor: number) => Fault> = new Map([
  ...["resetNetwork", "disassociate_host", "disassociate_project", "associate_host"].map(
    (name) => [name, gone] as const,
  ),
  // It was removed with the driver for Hyper-V, and is still an action of the microversions that open consoles by actions.
  [
    "os-getRDPConsole",
    (minor: number) =>
      minor <= REMOTE_CONSOLE_FACTS.until
        ? badRequest("Unavailable console type rdp-html5.")
        : notFound("The resource could not be found."),
  ],
]);

/**
 * Runs the one action of a body. Refuses a body of no action, or of several, and an unknown action. The facts of the action have been
 * checked before (route-facts.ts), so that a refusal for its policy reveals nothing about the server.
 */
export function runAction(
  deps: ActionDeps,
  body: Readonly<Record<string, unknown>>,
  one: Omit<ActionCall, "action" | "body">,
  options: ActionOptions,
): Promise<ActionResult> {
  const [action, ...others] = Object.keys(body);
  if (action === undefined || others.length > 0) throw malformedAction();
  const removed = REMOVED_ACTIONS.get(action);
  if (removed !== undefined) throw removed(one.call.minor);
  const known = SERVER_ACTIONS.get(action);
  if (known === undefined) throw unknownAction(action);
  const isIgnored = known.ignoredUntil !== undefined && one.call.minor <= known.ignoredUntil;
  return known.run(deps, { ...one, action, body: new ActionBody(action, isIgnored ? null : body[action]) }, options);
}
