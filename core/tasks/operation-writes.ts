import type { ServerSpec, ServerVolume } from "../../proto/gen/berth/shared.ts";
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
import { isMove, OPERATIONS, type OperationKind } from "./operation-kinds.ts";
import { isSuccess, isWayBack, type Stage, type Target } from "./operation-routes.ts";
import { taskStateOf } from "./operation-stages.ts";
import type { StepWrite } from "./operation-step.ts";
import type { MigrationStatuses } from "./operation-traits.ts";
import type { ServerStatus } from "./server.ts";
import { withoutReplacement } from "./server-volumes.ts";
import { attemptStartedAt } from "./starts-guest.ts";

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
  /** No other destination could have done better than that of `noted`, so the failure does not count against its host. */
  readonly isNobodysFault?: boolean;
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
    startsAttempt: ends ? undefined : attemptStartedAt(facts, to, selection),
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
  const isFormer = isWayBack(to) || OPERATIONS[facts.kind].formerSpecAt.includes(to);
  const spec = to === "starting" ? facts.after : isFormer ? facts.before : specAtEnd(facts, to);
  return {
    status,
    taskState: ends ? null : taskStateOf(facts.kind, to as Stage),
    home: homeAfter(facts, transition),
    spec,
    fault,
    ...(transition.isForgotten === true && { uncertain: true as const }),
  };
}

/**
 * For an operation that changes the spec at its end, or when it is about to end: a volume that may be connected to the guest stays in the spec. At the end of a
 * replacement the other volume has the id of the first one. Any other operation leaves the mark of a volume of which nobody knows whether it was replaced.
 */
function specAtEnd({ kind, after, volume }: OperationFacts, to: Transition["to"]): ServerSpec | undefined {
  const { newSpecAt, endsReplacement } = OPERATIONS[kind];
  if (!newSpecAt.includes(to)) return undefined;
  if (!endsReplacement || !(isSuccess(to) || to === "attaching-kept")) return after;
  const replaced = (one: ServerVolume): ServerVolume =>
    one.volumeId === volume?.volumeId ? withoutReplacement(one) : one;
  return { ...after, volumes: after.volumes.map(replaced) };
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
    case "forsaking":
      return nameOf(facts.source);
    case "succeed":
    case "succeed-keeping":
      return OPERATIONS[facts.kind].allocation === "offloaded" ? null : undefined;
    default:
      return undefined;
  }
}

const nameOf = (place: PlaceOf | null) => (place === null ? null : { host: place.host, attemptId: place.attemptId });

/**
 * A server whose move waits for its confirmation goes on waiting when its host is forced down before it says which of two volumes the guest uses: the move can still be confirmed, and the
 * guest that the source keeps is not touched.
 */
function statusAfter({ kind, statusBefore }: OperationFacts, { from, to, isForgotten }: Transition): ServerStatus {
  const { whenGivenUp, finalStatus: whenDone, confirmation } = OPERATIONS[kind];
  if (to === "lost") return confirmation === "unchanged" && isForgotten !== true ? statusBefore : "ERROR";
  const givenUpAs = (from !== null && whenGivenUp.statusFrom?.[from.stage]) || whenGivenUp.status;
  const finalStatus = to === "give-up" ? givenUpAs : whenDone;
  if (finalStatus === "as-before") return statusBefore;
  if (finalStatus === "as-before-or-healed") return statusBefore === "ERROR" ? "ACTIVE" : statusBefore;
  return finalStatus;
}

/** The move's own migration, or the migration of the move that is confirmed or reverted. */
function migrationOf(facts: OperationFacts, transition: Transition): StepWrite["migration"] {
  const { kind, migrationUuid, runs } = facts;
  const { migration, confirmation, source, whenGivenUp } = OPERATIONS[kind];
  const destination = destinationOf(facts, transition.selection);
  if (migration === null || migrationUuid === "" || destination === null) return null;
  const { host: destHost, attemptId: destAttemptId } = destination;
  const isBack = isBackAtSource(transition);
  const isOver = isBack || (isSuccess(transition.to) && confirmation !== "awaited");
  return {
    uuid: migrationUuid,
    status: migrationStatus(kind, migration, transition),
    destHost,
    destAttemptId,
    ended: isOver,
    holdsSource: (source === "fenced" && transition.to === "succeed") || transition.to === "succeed-keeping",
    runs: confirmation !== "none" && runs,
    note:
      transition.to === "give-up" && whenGivenUp.note !== null
        ? keptReason(`${whenGivenUp.note}: ${transition.reason}`)
        : "",
  };
}

/**
 * Returns the status of the migration after this transition. A move that goes back or is lost has failed. The statuses of other operations
 * come from their tables alone.
 */
function migrationStatus(kind: OperationKind, statuses: MigrationStatuses, { from, to, reason }: Transition): string {
  if (!isMove(kind)) return statuses[to] ?? statuses.any;
  if (isBackAtSource({ from, to })) return reason.startsWith(ABORTED) ? "cancelled" : "error";
  if (to === "lost") return "error";
  return statuses[to] ?? statuses.any;
}

/** Whether the server goes back to its source by this transition, or has gone back before. */
const isBackAtSource = ({ from, to }: Pick<Transition, "from" | "to">): boolean =>
  isWayBack(to) || (from !== null && isWayBack(from.stage));

/** The beginning of the reason of an aborted operation. */
export const ABORTED = "Aborted";

function attemptsOf(facts: OperationFacts, { from, to, selection, noted }: Transition): StepWrite["attempts"] {
  if (!facts.isMove) return [];
  const host = destinationOf(facts, selection)?.host ?? "";
  const past = noted.map((one) => ({ ...one, reason: keptReason(one.reason) }));
  if (to === "preparing") return [...past, { selection, host, result: null, reason: "" }];
  if (isSuccess(to)) return [...past, { selection, host, result: "success", reason: "" }];
  const breaksOff = isWayBack(to) || (to === "lost" && !isBackAtSource({ from, to }));
  if (breaksOff && from !== null && past.every((one) => one.selection !== from.selection)) {
    return [...past, { selection: from.selection, host, result: "cancelled", reason: "" }];
  }
  return past;
}

function changeOf(facts: OperationFacts, { from, to, selection }: Transition): AllocationChange | null {
  const { parties } = facts;
  const { allocation } = OPERATIONS[facts.kind];
  const destination = destinationOf(facts, selection)?.items ?? [];
  switch (to) {
    case "preparing":
      if (from === null) return leaveChange(parties, destination);
      return hopChangeOf(parties, destinationOf(facts, from.selection)?.items ?? [], destination);
    case "restoring":
    case "forsaking":
      return returnChange(parties, destination);
    case "succeed":
      return allocation === "kept" ? null : allocation === "settled" ? settleChange(parties) : offloadChange(parties);
    case "succeed-keeping":
      return allocation === "offloaded" ? keepChange(parties.server, facts.taskId) : null;
    default:
      return null;
  }
}

/**
 * Only for a server that was offloaded although its host did not confirm it. No other consumer could hold the allocation of the guest that
 * may be left.
 */
function leftoverOf({ kind, source, taskId }: OperationFacts, { to }: Transition): StepWrite["leftover"] {
  if (OPERATIONS[kind].allocation !== "offloaded" || to !== "succeed-keeping" || source === null) return undefined;
  return { uuid: leftoverUuid(taskId), host: source.host };
}

/** An evacuation takes the server only from a fenced host or, where the fence is waived, from an unseen one. */
function evacuatedOf(
  { kind, source, fenceWaived }: OperationFacts,
  { from, to, unseenMs }: Transition,
): StepWrite["evacuated"] {
  if (OPERATIONS[kind].source !== "fenced" || source === null || !(from === null || to === "starting"))
    return undefined;
  return { host: source.host, unseenMs, fenceWaived };
}

function groupOf(facts: OperationFacts, { to, selection }: Transition): StepWrite["group"] {
  const membership = facts.after.group;
  const toHost = destinationOf(facts, selection)?.host;
  if (to !== "preparing" || !isHardGroup(membership) || toHost === undefined) return undefined;
  return { membership, toHost };
}
