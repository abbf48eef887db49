import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { AllocationChange } from "../ledger/allocation-change.ts";
import { keptReason, type PastAttempt } from "./failure-message.ts";
import { isHardGroup } from "./group-rule.ts";
import {
  hopChangeOf,
  keepChange,
  leaveChange,
  leftoverUuid,
  offloadChange,
  returnChange,
  settleChange,
} from "./move-change.ts";
import { destinationOf, type OperationFacts, type PlaceOf } from "./operation-facts.ts";
import { OPERATIONS, type OperationKind, taskStateOf } from "./operation-kinds.ts";
import { isSuccess, type Stage, type Target } from "./operation-routes.ts";
import type { StepWrite } from "./operation-step.ts";
import type { ServerStatus } from "./server.ts";

/** A transition of a route, from a stage to the next one or to an end. */
export interface Transition {
  /** Null for the beginning of the operation. */
  readonly from: { readonly stage: Stage; readonly selection: number } | null;
  readonly to: Exclude<Target, "another">;
  readonly selection: number;
  /** Why the operation goes back. Empty while it goes forward. */
  readonly reason: string;
  /** The results of destinations on the way. */
  readonly noted: readonly PastAttempt[];
  /** The operation ends because guests have obeyed orders that the database has lost. */
  readonly isForgotten?: boolean;
  /** For an evacuation whose fence is waived: how long the source's agent must have been unseen. */
  readonly unseenMs: number;
}

/** The change that a transition writes to the cell's database. It is decided only here. */
export function writeOf(facts: OperationFacts, transition: Transition): StepWrite {
  const { to, selection, reason } = transition;
  const ends = isEnd(to);
  return {
    stage: ends ? null : to,
    outcome: ends ? (isSuccess(to) ? "success" : "error") : null,
    selection,
    reason,
    server: serverOf(facts, transition, ends),
    migration: migrationOf(facts, transition),
    attempts: attemptsOf(facts, transition),
    change: changeOf(facts, transition),
    evacuated: evacuatedOf(facts, transition),
    startsUnasked: startsUnaskedOf(facts, transition),
    group: groupOf(facts, transition),
    leftover: leftoverOf(facts, transition),
  };
}

/**
 * The write for an operation that stays at its stage and waits: the reason for the wait, and the remedy. With `isError` the server is shown
 * in ERROR meanwhile.
 */
export function noteOf(
  facts: OperationFacts,
  at: { readonly stage: Stage; readonly selection: number; readonly reason: string },
  note: string,
  isError: boolean,
): StepWrite {
  const { stage, selection, reason } = at;
  const migration = migrationOf(facts, { from: at, to: stage, selection, reason, noted: [], unseenMs: 0 });
  const shown = keptReason(note);
  return {
    stage,
    outcome: null,
    selection,
    reason,
    server: { ...(isError && { status: "ERROR", fault: shown }), taskState: taskStateOf(facts.kind, stage) },
    migration: migration === null ? null : { ...migration, note: shown },
    attempts: [],
    change: null,
  };
}

type End = Extract<Target, "succeed" | "succeed-keeping" | "give-up" | "lost">;
const isEnd = (to: Target): to is End => isSuccess(to) || to === "give-up" || to === "lost";

function serverOf(facts: OperationFacts, transition: Transition, ends: boolean): StepWrite["server"] {
  const { to } = transition;
  const fault = to === "give-up" || to === "lost" ? keptReason(transition.reason) : undefined;
  const status = ends ? statusAfter(facts, transition) : undefined;
  const spec = to === "starting" ? facts.after : to === "restoring" ? facts.before : specAfterVolume(facts, to);
  return {
    status,
    taskState: ends ? null : taskStateOf(facts.kind, to as Stage),
    home: homeAfter(facts, transition),
    spec,
    fault,
    ...(transition.isForgotten === true && { uncertain: true as const }),
  };
}

/** The spec with the attached volume, or without the detached one. A volume that may be connected to the guest stays in the spec. */
function specAfterVolume({ kind, after }: OperationFacts, to: Transition["to"]): ServerSpec | undefined {
  if (kind === "attach-volume") return to === "succeed" || to === "lost" ? after : undefined;
  return kind === "detach-volume" && to === "succeed" ? after : undefined;
}

/** The server's home from now on, or undefined when it does not change. */
function homeAfter(facts: OperationFacts, { to, selection }: Transition): StepWrite["server"]["home"] {
  const destination = destinationOf(facts, selection);
  switch (to) {
    case "preparing":
      return nameOf(facts.source ?? destination);
    case "starting":
      return nameOf(destination);
    case "restoring":
      return nameOf(facts.source);
    case "succeed":
    case "succeed-keeping":
      return facts.kind === "shelve-offload" ? null : undefined;
    default:
      return undefined;
  }
}

const nameOf = (place: PlaceOf | null) => (place === null ? null : { host: place.host, attemptId: place.attemptId });

function statusAfter({ kind, statusBefore }: OperationFacts, { to }: Transition): ServerStatus {
  if (to === "lost") return "ERROR";
  if (to === "give-up") return kind === "confirm" || kind === "revert" ? "VERIFY_RESIZE" : statusBefore;
  const { finalStatus } = OPERATIONS[kind];
  if (finalStatus === "as-before") return statusBefore;
  if (finalStatus === "as-before-or-healed") return statusBefore === "ERROR" ? "ACTIVE" : statusBefore;
  return finalStatus;
}

/** How the note on a migration begins whose revert was given up. */
export const NOT_REVERTED = "Not reverted";
const NOTED_AS: Partial<Record<OperationKind, string>> = { confirm: "Not confirmed", revert: NOT_REVERTED };

/** The move's own migration, or the migration of the move that is confirmed or reverted. */
function migrationOf(facts: OperationFacts, transition: Transition): StepWrite["migration"] {
  const { kind, migrationUuid, runs } = facts;
  const destination = destinationOf(facts, transition.selection);
  if (migrationUuid === "" || destination === null) return null;
  const { host: destHost, attemptId: destAttemptId } = destination;
  const undone = NOTED_AS[kind];
  const waits = kind === "resize" || kind === "migrate" || kind === "confirm" || kind === "revert";
  const isBack = transition.to === "restoring" || transition.from?.stage === "restoring";
  const isOver = isBack || (isSuccess(transition.to) && !(kind === "resize" || kind === "migrate"));
  return {
    uuid: migrationUuid,
    status: migrationStatus(kind, transition),
    destHost,
    destAttemptId,
    ended: isOver,
    holdsSource: (kind === "evacuate" && transition.to === "succeed") || transition.to === "succeed-keeping",
    runs: waits && runs,
    note: transition.to === "give-up" && undone !== undefined ? keptReason(`${undone}: ${transition.reason}`) : "",
  };
}

/** Source: the statuses of nova's Migration objects, by kind of move. */
function migrationStatus(kind: OperationKind, { from, to, reason }: Transition): string {
  const isLive = kind === "live-migrate";
  if (kind === "confirm") return to === "give-up" ? "finished" : isSuccess(to) ? "confirmed" : "confirming";
  if (kind === "revert")
    return to === "give-up" ? "finished" : to === "succeed" || to === "lost" ? "reverted" : "reverting";
  if (to === "lost" && from?.stage !== "restoring") return "error";
  if (to === "restoring" || from?.stage === "restoring") return reason.startsWith(ABORTED) ? "cancelled" : "error";
  switch (to) {
    case "preparing":
      return isLive ? "preparing" : "pre-migrating";
    case "handing-over":
      return isLive ? "running" : "migrating";
    case "succeed":
    case "succeed-keeping":
      return kind === "evacuate" ? "done" : kind === "resize" || kind === "migrate" ? "finished" : "completed";
    default:
      return "post-migrating";
  }
}

/** The beginning of the reason of an aborted operation. */
export const ABORTED = "Aborted";

function attemptsOf(facts: OperationFacts, { from, to, selection, noted }: Transition): StepWrite["attempts"] {
  if (!facts.isMove) return [];
  const host = destinationOf(facts, selection)?.host ?? "";
  const past = noted.map((one) => ({ ...one, reason: keptReason(one.reason) }));
  if (to === "preparing") return [...past, { selection, host, result: null, reason: "" }];
  if (isSuccess(to)) return [...past, { selection, host, result: "success", reason: "" }];
  const breaksOff = to === "restoring" || (to === "lost" && from?.stage !== "restoring");
  if (breaksOff && from !== null && past.every((one) => one.selection !== from.selection)) {
    return [...past, { selection: from.selection, host, result: "cancelled", reason: "" }];
  }
  return past;
}

function changeOf(facts: OperationFacts, { from, to, selection }: Transition): AllocationChange | null {
  const { kind, parties } = facts;
  const destination = destinationOf(facts, selection)?.items ?? [];
  switch (to) {
    case "preparing":
      if (from === null) return leaveChange(parties, destination);
      return hopChangeOf(parties, destinationOf(facts, from.selection)?.items ?? [], destination);
    case "restoring":
      return returnChange(parties, destination);
    case "succeed":
      if (kind === "live-migrate" || kind === "rebuild" || kind === "confirm") return settleChange(parties);
      return kind === "shelve-offload" ? offloadChange(parties) : null;
    case "succeed-keeping":
      return kind === "shelve-offload" ? keepChange(parties.server, facts.taskId) : null;
    default:
      return null;
  }
}

/**
 * Only for a server that was offloaded although its host did not confirm it. No other consumer could hold the allocation of the guest that
 * may be left.
 */
function leftoverOf({ kind, source, taskId }: OperationFacts, { to }: Transition): StepWrite["leftover"] {
  if (kind !== "shelve-offload" || to !== "succeed-keeping" || source === null) return undefined;
  return { uuid: leftoverUuid(taskId), host: source.host };
}

/** An evacuation takes the server only from a fenced host or, where the fence is waived, from an unseen one. */
function evacuatedOf(
  { kind, source, fenceWaived }: OperationFacts,
  { from, to, unseenMs }: Transition,
): StepWrite["evacuated"] {
  if (kind !== "evacuate" || source === null || !(from === null || to === "starting")) return undefined;
  return { host: source.host, unseenMs, fenceWaived };
}

/** Other moves ask the source before they start the destination. */
function startsUnaskedOf(facts: OperationFacts, { to, selection }: Transition): string | undefined {
  if (to !== "starting" || !(facts.kind === "unshelve" || facts.kind === "evacuate")) return undefined;
  return destinationOf(facts, selection)?.attemptId;
}

function groupOf(facts: OperationFacts, { to, selection }: Transition): StepWrite["group"] {
  const membership = facts.after.group;
  const toHost = destinationOf(facts, selection)?.host;
  if (to !== "preparing" || !isHardGroup(membership) || toHost === undefined) return undefined;
  return { membership, toHost };
}
