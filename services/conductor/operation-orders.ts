import {
  ATTACH_VERB,
  DETACH_VERB,
  type PowerVerb,
  RESCUE_VERB,
  SNAPSHOT_STEP_VERBS,
  SNAPSHOT_VERB,
} from "../../core/agent/power-verbs.ts";
import { assert } from "../../core/assert.ts";
import { destinationOf, type OperationFacts, type PlaceOf, usedPlaceOf } from "../../core/tasks/operation-facts.ts";
import { isLiveMove, type OperationKind } from "../../core/tasks/operation-kinds.ts";
import type { OperationEffect, OperationEvent } from "../../core/tasks/operation-machine.ts";
import type { Ask } from "../../core/tasks/operation-routes.ts";
import { edgesOf, verbOf } from "../../core/tasks/operation-stages.ts";
import { guestInterfaces } from "../../core/tasks/port-change.ts";
import { filesOf, withoutReplacement } from "../../core/tasks/server-volumes.ts";
import type { ConductorMessage, Power } from "../../proto/gen/berth/agent.ts";
import type { VolumeFile } from "../../proto/gen/berth/shared.ts";
import { type MetNeeds, withConnection, withNeeds, withVifs } from "./neighbour-needs.ts";

export type AskEffect = Extract<OperationEffect, { kind: "ask" }>;
/** A question with the guest that it is about. `tries` counts how often it was asked. */
export type AskedGuest = AskEffect & { readonly place: PlaceOf; readonly tries: number };

/** The id of the order that a step gives. Repetitions of the order have the same id, and the forced form has another one. */
export function orderIdOf(taskId: string, { step, force }: Pick<AskEffect, "step" | "force">): string {
  return `${taskId}/${step * 2 + (force ? 1 : 0)}`;
}

/** The guest that a stage asks about, or null when no host is asked. */
export function placeAsked(facts: OperationFacts, ask: Ask, selection: number): PlaceOf | null {
  switch (ask) {
    case "prepare":
    case "start-destination":
    case "check-destination":
    case "destroy-destination":
      return destinationOf(facts, selection);
    case "hand-over":
    case "start-source":
    case "check-source":
    case "destroy-source":
    case "destroy-home":
    case "power":
    case "snapshot":
    case "rescue":
    case "undo-rescue":
    case "attach-at-source":
    case "detach-at-source":
    case "undo-at-source":
    case "reconnect-at-source":
    case "extend-volume":
    case "switch-volume":
    case "return-volume":
    case "merge-volume":
    // Nothing is sent to the host.
    case "announce-snapshot":
    case "deny-snapshot":
    case "reimage-volume":
      return facts.source;
    case "attach-volume":
    case "detach-volume":
    case "undo-attach":
    case "mirror-volume":
    case "pivot-volume":
    case "keep-volume":
    // Nothing is sent to the host.
    case "leave-replaced":
    case "complete-replacement":
    case "abandon-replacement":
      return usedPlaceOf(facts);
    case "nothing":
      return null;
    default:
      return ask satisfies never;
  }
}

interface Given {
  readonly place: PlaceOf;
  readonly timeoutMs: number;
  readonly traceparent: string;
  /** For a hand-over, where the destination listens. */
  readonly listensAt: string;
  /** Empty for an order that gives the guest no volumes and no ports. */
  readonly needs: MetNeeds;
}

/** The fields of an order that only some verbs have. */
export const NO_SUBJECT = {
  ...{ imageId: "", rescueImage: undefined, volume: undefined, interfaces: undefined, snapshot: undefined },
  files: [] as VolumeFile[],
};

/** The message for the agent of the guest's host. */
export function orderOf(facts: OperationFacts, effect: AskEffect, given: Given): ConductorMessage {
  const { place, timeoutMs, listensAt } = given;
  const { ask, revision } = effect;
  assert(ask !== "nothing" && !isAskedOfCinder(ask), `a stage that asks ${ask} gives no order`);
  const name = { host: place.host, serverUuid: facts.after.uuid, attemptId: place.attemptId };
  const orderId = orderIdOf(facts.taskId, effect);
  const order = (verb: string, subject: Partial<Power>): ConductorMessage => ({
    body: { $case: "power", value: { ...name, verb, orderId, revision, ...NO_SUBJECT, ...subject } },
  });
  const ports = withVifs(facts.after.ports, given.needs.vifs);
  const files = filesOf(facts.after);
  const connected = connectedVolume(facts, ask, given.needs);
  // A guest whose host did not answer when its server's ports changed gets its interfaces when it is started or rebooted hard.
  const power = (verb: PowerVerb): ConductorMessage =>
    order(verb, { files, ...(["start", "hard-reboot"].includes(verb) && { interfaces: guestInterfaces(ports) }) });
  switch (ask) {
    case "prepare":
      return build(facts, effect.selection, given);
    case "hand-over":
      return {
        body: {
          $case: "handOff",
          value: { ...name, ...handOver(facts, effect), orderId, revision, timeoutMs, listensAt },
        },
      };
    case "start-destination":
    case "start-source":
      return power(facts.pauses ? "pause" : "start");
    // A check asks only whether the host has the guest in its proper state. If so, the order changes nothing.
    case "check-destination":
      return power(facts.runs ? "start" : "stop");
    // The destination stays the home, and may run, until the source becomes the home. So the source must be stopped.
    case "check-source":
      return power("stop");
    case "destroy-destination":
    case "destroy-source":
    case "destroy-home":
      return { body: { $case: "destroy", value: name } };
    case "power":
      return power(verbOf(facts.kind));
    case "snapshot":
      return order(SNAPSHOT_VERB, { imageId: facts.taskId });
    case "rescue":
      return order(RESCUE_VERB, { rescueImage: facts.rescueImage ?? undefined, files });
    case "attach-volume":
    case "attach-at-source":
    case "reconnect-at-source":
      return order(ATTACH_VERB, { volume: connected });
    case "detach-volume":
    case "undo-attach":
    case "detach-at-source":
    case "undo-at-source":
      return order(DETACH_VERB, { volume: facts.volume ?? undefined });
    case "mirror-volume":
      return order(ask, { volume: connected });
    case "extend-volume":
    case "pivot-volume":
    case "keep-volume":
      return order(ask, { volume: facts.volume ?? undefined, mayLackVolume: effect.stage === "unmirroring" });
    case SNAPSHOT_STEP_VERBS.switch:
    case SNAPSHOT_STEP_VERBS.return:
    case SNAPSHOT_STEP_VERBS.merge:
      return order(ask, { volume: connected, snapshot: facts.snapshot ?? undefined });
    case "undo-rescue":
      return power(facts.runs ? "start" : "stop");
    default:
      return ask satisfies never;
  }
}

/** Who gets the guest, and how, with the files to which it writes as far as the database knows. */
function handOver(facts: OperationFacts, { selection, force }: AskEffect) {
  const destination = destinationOf(facts, selection);
  const to = { toHost: destination?.host ?? "", toAttemptId: destination?.attemptId ?? "" };
  const files = facts.before.volumes.map(({ volumeId, file }) => ({ volumeId, file }));
  return { ...to, live: isLiveMove(facts.kind), force, files: { files } };
}

/** The operation's volume with the way to it. A volume that is connected again in the end has its own id alone, whichever of two it is by then. */
function connectedVolume({ volume }: OperationFacts, ask: Ask, { connections }: MetNeeds) {
  if (volume === null) return undefined;
  return withConnection(ask === "reconnect-at-source" ? withoutReplacement(volume) : volume, connections);
}

function build(facts: OperationFacts, selection: number, given: Omit<Given, "listensAt">): ConductorMessage {
  const { place, timeoutMs, traceparent, needs } = given;
  const server = withNeeds(facts.after, needs);
  const value = {
    host: place.host,
    attemptId: place.attemptId,
    server,
    allocation: facts.selections[selection]?.allocation,
    timeoutMs,
    traceparent,
    movedFromHost: facts.source?.host ?? "",
    movedFromAttemptId: facts.source?.attemptId ?? "",
    movedBy: facts.kind,
  };
  return { body: { $case: "build", value } };
}

/**
 * How long a host that can be given up has for an order, and what it means if the host has not answered by then. If the route waits for a silent host at this stage, it is
 * silence like any other, since the host may have done its work.
 */
export function attemptLimit(
  kind: OperationKind,
  { stage, step }: Pick<AskEffect, "stage" | "step">,
  { attemptTimeoutMs, hostGraceMs }: Limits,
): { readonly ms: number; readonly event: OperationEvent } {
  const workMs = 2 * attemptTimeoutMs;
  const reason = `no outcome within ${Math.round(workMs / 1_000)} s`;
  const waits = edgesOf(kind, stage)?.gone === stage;
  const event = waits
    ? ({ kind: "gone", step, reason } as const)
    : ({ kind: "failed", step, reason, final: false } as const);
  return { ms: workMs + hostGraceMs, event };
}

interface Limits {
  readonly attemptTimeoutMs: number;
  readonly hostGraceMs: number;
}

/** The questions to which Cinder, and no host, has the answer. */
export const ASKED_OF_CINDER = [
  "leave-replaced",
  "complete-replacement",
  "abandon-replacement",
  "reimage-volume",
  "announce-snapshot",
  "deny-snapshot",
] as const satisfies readonly Ask[];
type AskedOfCinder = (typeof ASKED_OF_CINDER)[number];
export const isAskedOfCinder = (ask: Ask): ask is AskedOfCinder => (ASKED_OF_CINDER as readonly Ask[]).includes(ask);

/** Whether a host that does not answer in time counts as failed. */
export const isGivenUp = (ask: AskEffect["ask"]): boolean => ask === "prepare" || ask === "hand-over";

/** Orders whose failure is grave, or after which nothing is tried any more. */
const FAILING_LATE: readonly Ask[] = [
  "start-source",
  "check-source",
  "check-destination",
  "undo-rescue",
  "keep-volume",
  "return-volume",
  "reconnect-at-source",
];

/** How often a host may fail before the failure counts as its answer. */
export function triesMax(ask: AskEffect["ask"]): number {
  if (ask.startsWith("destroy")) return 5;
  return FAILING_LATE.includes(ask) ? 3 : 1;
}

/** How long an operation waits for hosts, in milliseconds. */
export const ORDER_WAITS = {
  /** Pause between two looks at a host that is up but that no conductor could be found for. */
  lookAgainMs: 500,
  /** An agent answers within its driver's deadline, so an agent that has not answered after this time is asked again. */
  answerMs: 90_000,
  /** The longest pause before a host that has failed an order gets it again. */
  retryMsMax: 10_000,
} as const;
const RETRY_MS = 200;

/** Milliseconds after which a host that has failed an order this many times gets it again. */
export const retryDelayMs = (tries: number): number => Math.min(RETRY_MS * 2 ** (tries - 1), ORDER_WAITS.retryMsMax);

/** A stage that may choose another host leaves its host after this many releases, since no other conductor reaches it either. */
export const releasesMax = (ask: AskEffect["ask"]): number => (ask === "prepare" ? 3 : Number.POSITIVE_INFINITY);
