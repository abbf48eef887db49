import { describeForgotten } from "../../core/tasks/describe-wait.ts";
import { keptReason } from "../../core/tasks/failure-message.ts";
import { destinationOf, type OperationFacts, type PlaceOf } from "../../core/tasks/operation-facts.ts";
import type { OperationEvent } from "../../core/tasks/operation-machine.ts";
import { type GuestLook, readGoneOver, readRefusal } from "../../core/tasks/refused-order.ts";
import { GuestState } from "../../proto/gen/berth/agent.ts";
import type { LookedAt } from "./guest-looker.ts";
import type { AskEffect } from "./operation-orders.ts";

type Asked = AskEffect & { readonly place: PlaceOf };

/** The guest of an operation's server at a place. */
export function guestOf(facts: OperationFacts, place: Pick<PlaceOf, "host" | "attemptId">): LookedAt {
  return { host: place.host, serverUuid: facts.after.uuid, attemptId: place.attemptId };
}

/**
 * Interprets a host's refusal of an order by looking at the server's guests. `plain`: the refusal means only what the host said. `unclear`:
 * the host does not say what its guest is, or the guest runs and is not paused yet as the order wants. It may be the only copy, so the host is asked again.
 */
export async function meaningOfRefusal(
  facts: OperationFacts,
  asked: Asked,
  lookAt: (place: PlaceOf) => Promise<GuestLook>,
): Promise<OperationEvent | "plain" | "unclear"> {
  const { ask, step, revision, place } = asked;
  const look = await lookAt(place);
  const refusal = readRefusal(ask, revision, look);
  switch (refusal) {
    case "failed":
      // The continued task has raised its revision as well, so the source may not show that it has handed over.
      return ask === "hand-over" ? meaningOfDestination(facts, asked, lookAt, "plain") : "plain";
    case "unclear":
      return "unclear";
    case "done":
      // A guest that is to be paused runs for a moment before that, so by this very order it may run although it has not obeyed.
      return facts.pauses && look.kind === "found" && look.revision === revision ? "unclear" : { kind: "done", step };
    case "back":
      return { kind: "failed", step, reason: `the server runs on ${place.host} because of a later order`, final: true };
    case "forgotten":
      return forgotten(facts, asked, { host: place.host, look });
    case "gone-over":
      return meaningOfDestination(facts, asked, lookAt, "unclear");
    default:
      return refusal satisfies never;
  }
}

/** A destination that has run took over in commits that the database has lost. `silence` is the meaning of a destination that does not answer. */
async function meaningOfDestination(
  facts: OperationFacts,
  asked: Asked,
  lookAt: (place: PlaceOf) => Promise<GuestLook>,
  silence: "plain" | "unclear",
): Promise<OperationEvent | "plain" | "unclear"> {
  const destination = destinationOf(facts, asked.selection);
  if (destination === null) return "plain";
  const look = await lookAt(destination);
  if (look.kind === "silent") return silence;
  const found = readGoneOver(look);
  if (found === "failed") return "plain";
  if (found === "arrived") return { kind: "arrived", step: asked.step };
  return forgotten(facts, asked, { host: destination.host, look });
}

function forgotten(
  facts: OperationFacts,
  { step, revision }: Asked,
  { host, look }: { readonly host: string; readonly look: GuestLook },
): OperationEvent {
  const obeyed = look.kind === "found" ? look.revision : 0;
  return { kind: "forgotten", step, reason: keptReason(describeForgotten(facts, { host, obeyed, known: revision })) };
}

/** A guest in one of these states exists. A guest that has run was prepared and started in commits that the database has lost. */
export const GUEST_EXISTS: readonly GuestState[] = [
  ...[GuestState.GUEST_STATE_PREPARED, GuestState.GUEST_STATE_RUNNING, GuestState.GUEST_STATE_STOPPED],
  ...[GuestState.GUEST_STATE_PAUSED, GuestState.GUEST_STATE_SUSPENDED, GuestState.GUEST_STATE_RESCUED],
];

/** The reason of a destroy that is refused for the sake of a guest that the database has forgotten. */
export const IN_QUARANTINE =
  "the guest is in quarantine, because the cell's database has lost commits about it (see berth cell quarantine, which can destroy it)";
