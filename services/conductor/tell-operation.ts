import { destinationOf, type OperationFacts } from "../../core/tasks/operation-facts.ts";
import type { OperationEffect } from "../../core/tasks/operation-machine.ts";
import { EventKind } from "../../proto/gen/berth/cell.ts";
import type { RunPorts } from "./task-run.ts";

type Telling = Extract<OperationEffect, { kind: "tell-wait" | "tell-attempt-failed" | "tell-end" }>;

/** Writes to the log, and tells the API tier, what has become of an operation or of one of its attempts. */
export function tellOperation(facts: OperationFacts, effect: Telling, { events, tell }: RunPorts): void {
  const serverUuid = facts.after.uuid;
  switch (effect.kind) {
    case "tell-wait":
      events.operationWaits(serverUuid, facts.kind, effect.note);
      break;
    case "tell-attempt-failed": {
      const { reason } = effect;
      const host = destinationOf(facts, effect.selection)?.host ?? "";
      events.attemptFailed(serverUuid, host, reason);
      tell({ kind: EventKind.EVENT_KIND_ATTEMPT_FAILED, serverUuid, host, reason });
      break;
    }
    case "tell-end":
      if (effect.as === "lost")
        tell({ kind: EventKind.EVENT_KIND_SERVER_ERROR, serverUuid, host: "", reason: effect.reason });
      break;
    default:
      effect satisfies never;
  }
}
