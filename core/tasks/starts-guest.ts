import type { PowerVerb } from "../agent/power-verbs.ts";
import { destinationOf, type OperationFacts } from "./operation-facts.ts";
import { OPERATIONS, type OperationKind } from "./operation-kinds.ts";
import type { Ask, Stage } from "./operation-routes.ts";
import { edgesOf } from "./operation-stages.ts";

/**
 * Whose guest may run after the order, though it did not run before. `if-it-should`: the order is to stop the guest if the server should not run. Each order
 * must be named here, so that none is forgotten.
 */
const STARTED: Readonly<
  Record<Ask, { readonly at: "source" | "destination"; readonly by: "any" | "if-it-should" | "verb" } | null>
> = {
  prepare: null,
  "hand-over": null,
  "start-destination": { at: "destination", by: "if-it-should" },
  "check-destination": { at: "destination", by: "if-it-should" },
  "start-source": { at: "source", by: "if-it-should" },
  "check-source": null,
  "destroy-destination": null,
  "destroy-source": null,
  "destroy-home": null,
  power: { at: "source", by: "verb" },
  snapshot: null,
  rescue: { at: "source", by: "any" },
  "undo-rescue": { at: "source", by: "if-it-should" },
  "attach-volume": null,
  "detach-volume": null,
  "undo-attach": null,
  "attach-at-source": null,
  "detach-at-source": null,
  "undo-at-source": null,
  "reconnect-at-source": null,
  "extend-volume": null,
  "mirror-volume": null,
  "pivot-volume": null,
  "keep-volume": null,
  "leave-replaced": null,
  "complete-replacement": null,
  "abandon-replacement": null,
  "switch-volume": null,
  "return-volume": null,
  "merge-volume": null,
  "announce-snapshot": null,
  "deny-snapshot": null,
  "reimage-volume": null,
  nothing: null,
};
/** A reboot starts a guest that stands still. */
const VERB_STARTS: Readonly<Record<PowerVerb, boolean>> = {
  start: true,
  stop: false,
  reboot: true,
  "hard-reboot": true,
  pause: false,
  unpause: true,
  suspend: false,
  resume: true,
  unrescue: true,
  "inject-nmi": false,
};

/** Where the order of an operation may make a guest run, or null when it cannot. */
function startedAt(kind: OperationKind, ask: Ask): "source" | "destination" | null {
  const { verb } = OPERATIONS[kind];
  const started = STARTED[ask];
  if (started === null || (started.by === "verb" && (verb === null || !VERB_STARTS[verb]))) return null;
  return started.at;
}

/**
 * Whether an operation of this kind has a stage that may make a guest run. It must not begin while another guest of the server is in quarantine (law 4).
 * That holds also for a server that runs as far as its row knows: a restored database may name a home that the server has left, and the operation's order
 * may be later than those that the guest there has obeyed.
 */
export function startsGuest(kind: OperationKind): boolean {
  return [...OPERATIONS[kind].route.values()].some(({ ask }) => startedAt(kind, ask) !== null);
}

/**
 * The attempt whose guest may run because of the order of this stage, in the place of another guest or of none. Undefined when the stage starts
 * no guest. The guest of a paused server that moves live counts, too: it takes the disks, and one that goes back to its source runs there for a moment. A
 * destination whose source is not asked counts also when the server should not run, since it becomes the home of the server without a word from the former one.
 */
export function attemptStartedAt(facts: OperationFacts, stage: Stage, selection: number): string | undefined {
  const { kind, source, runs, pauses } = facts;
  const ask = edgesOf(kind, stage)?.ask ?? "nothing";
  const at = startedAt(kind, ask);
  if (at === null) return undefined;
  if (STARTED[ask]?.by === "if-it-should" && !runs && !pauses && OPERATIONS[kind].source === "asked") return undefined;
  return (at === "source" ? source : destinationOf(facts, selection))?.attemptId;
}
