import {
  describeForgotten,
  describeKept,
  describeKeptWithout,
  describeOutdated,
  describeStranded,
  type SourceWord,
} from "../../core/tasks/describe-wait.ts";
import { keptReason } from "../../core/tasks/failure-message.ts";
import { destinationOf, type OperationFacts, type PlaceOf } from "../../core/tasks/operation-facts.ts";
import { givesContent, isLiveMove } from "../../core/tasks/operation-kinds.ts";
import type { OperationEvent } from "../../core/tasks/operation-machine.ts";
import type { Stage } from "../../core/tasks/operation-routes.ts";
import { type GuestLook, readGoneOver, readRefusal } from "../../core/tasks/refused-order.ts";
import { GuestState, type OrderReport } from "../../proto/gen/berth/agent.ts";
import type { LookedAt } from "./guest-looker.ts";
import type { AskedGuest } from "./operation-orders.ts";
import type { SeenElsewhere } from "./task-releaser.ts";

/**
 * After so many refusals of a source that has no guest, half a minute, a silent destination is no longer awaited, or people are told of the wait. A restarted conductor hears of its
 * hosts in a few seconds.
 */
const EMPTY_TRIES_MAX = 9;

/**
 * After so many refusals of a destination whose source is silent, about six seconds, it counts as one that waits. QEMU may need some seconds to take over memory that has arrived, and a conductor that was
 * restarted to hear of the source, so a destination that lacks something is not believed before that either.
 */
const UNHEARD_TRIES_MAX = 6;

/** What a host that has refused an order says of the guest. */
export type RefusalFindings = Pick<OrderReport, "lacksContent" | "guestMissing">;

/**
 * An order that the host of `place` has refused for the reason `failed`. `lacksContent`: the guest still waits for what the source was to hand over. `guestMissing`: the host is sure that it has lost the guest,
 * and does not only fail to know it.
 */
export type Refused = AskedGuest & {
  readonly failed: string;
  readonly lacksContent: boolean;
  readonly guestMissing: boolean;
};

type Meaning = OperationEvent | "plain" | "unclear" | "empty" | "released";

/** What may be asked about the guests of a server. */
interface AskedGuests {
  look(name: LookedAt): Promise<GuestLook>;
  /** Looks for another conductor that hears of a host that is silent here, and releases the task to it, but not again and again. */
  seek(host: string): Promise<SeenElsewhere>;
}
/** The guests of the operation of a refused order. */
interface MoveGuests {
  lookAt(place: PlaceOf): Promise<GuestLook>;
  seek(place: PlaceOf): Promise<SeenElsewhere>;
}

const UNREACHED = "is up, but its agent is not connected to the conductor that carries the move out";

/** At these stages a refusal of Cinder or Neutron leaves a guest as the host's own would, so the server's guests are looked at first. */
export const LEFT_ON_WORD: readonly Stage[] = ["recalling", "starting"];

/**
 * Why a server is not brought back to the guest that the source keeps for a revert, although the source has it: it lacks a volume of the server, as after a change of volumes in which the source was forced
 * down. Empty if it lacks none, or if the source does not say that.
 */
export function lackedAtSource(
  { after, source }: OperationFacts,
  { ask }: Pick<AskedGuest, "ask">,
  { volumes }: Pick<OrderReport, "volumes">,
): string {
  if (ask !== "check-source" || volumes === undefined) return "";
  const lacked = after.volumes.flatMap(({ volumeId }) => (volumes.volumeIds.includes(volumeId) ? [] : volumeId));
  return lacked.length === 0 ? "" : describeKeptWithout(source?.host ?? "the source", lacked);
}

/** The guest of an operation's server at a place. */
export function guestOf(facts: OperationFacts, place: Pick<PlaceOf, "host" | "attemptId">): LookedAt {
  return { host: place.host, serverUuid: facts.after.uuid, attemptId: place.attemptId };
}

/**
 * Interprets a host's refusal of an order by looking at the server's guests. `plain`: the refusal means only what the host said. `unclear`:
 * the host does not say what its guest is, or the guest runs and is not paused yet as the order wants. It may be the only copy, so the host is asked again.
 */
export async function meaningOfRefusal(facts: OperationFacts, refused: Refused, asked: AskedGuests): Promise<Meaning> {
  const { ask, stage, step, revision, place } = refused;
  const guests: MoveGuests = {
    lookAt: (at) => asked.look(guestOf(facts, at)),
    seek: (at) => asked.seek(at.host),
  };
  const look = await guests.lookAt(place);
  const refusal = readRefusal(ask, revision, look);
  switch (refusal) {
    case "failed":
      // The continued task has raised its revision as well, so the source may not show that it has handed over.
      if (ask === "hand-over")
        return meaningOfDestination(facts, refused, guests, { isSourceEmpty: isReplacedMissing(facts, refused) });
      // It may have handed over before the move was aborted.
      if (stage === "recalling")
        return meaningOfDestination(facts, refused, guests, { isSourceEmpty: look.kind === "absent" });
      return ask === "start-destination" && look.kind === "found" ? meaningOfNoStart(facts, refused, guests) : "plain";
    case "unclear":
      return "unclear";
    case "done":
      // A guest that is to be paused runs for a moment before that, so by this very order it may run although it has not obeyed. If it goes on running, it has obeyed another order
      // of this revision, which a restored database has forgotten.
      return facts.pauses && look.kind === "found" && look.revision === revision && refused.tries <= UNHEARD_TRIES_MAX
        ? "unclear"
        : { kind: "done", step };
    case "back":
      return { kind: "failed", step, reason: `the server runs on ${place.host} because of a later order`, final: true };
    case "forgotten":
      return forgotten(facts, refused, { host: place.host, look });
    case "gone-over":
      return meaningOfDestination(facts, refused, guests, { isSourceEmpty: true });
    default:
      return refusal satisfies never;
  }
}

/**
 * Whether a rebuild replaces a guest that its host is sure to have lost. The new guest takes nothing from it, so nothing remains to be handed over. A guest that the host has destroyed by order is not lost: the server may
 * have been moved away in commits that the database has lost, and run elsewhere.
 */
const isReplacedMissing = ({ kind }: OperationFacts, { ask, guestMissing }: Refused): boolean =>
  ask === "hand-over" && guestMissing && !givesContent(kind);

/**
 * A destination that has run took over in commits that the database has lost. One that has not run is the only guest if the source has none, because its host was reinstalled,
 * for instance. It decides about a live move itself, since it starts only if it has received everything. Of a copy at rest nobody knows whether it is whole.
 */
async function meaningOfDestination(
  facts: OperationFacts,
  refused: Refused,
  guests: MoveGuests,
  { isSourceEmpty }: { readonly isSourceEmpty: boolean },
): Promise<Meaning> {
  const destination = destinationOf(facts, refused.selection);
  if (destination === null) return "plain";
  const look = await guests.lookAt(destination);
  if (look.kind === "silent") return isSourceEmpty ? meaningOfSilence(facts, refused, destination, guests) : "plain";
  const found = readGoneOver(look);
  switch (found) {
    case "arrived":
      return { kind: "arrived", step: refused.step };
    case "forgotten":
      return forgotten(facts, refused, { host: destination.host, look });
    case "waits":
      if (isReplacedMissing(facts, refused)) return { kind: "done", step: refused.step };
      if (!isSourceEmpty || !givesContent(facts.kind)) return "plain";
      if (refused.isRecalled) return outdated(facts, refused, "no longer has the guest");
      return isLiveMove(facts.kind) ? { kind: "arrived", step: refused.step } : stranded(facts, refused);
    case "failed":
      return "plain";
    default:
      return found satisfies never;
  }
}

/**
 * Only the silent destination may have a guest, which must not be cleared away, neither now nor when the time for the order is over. A live move waits for its host, and says so after a
 * while; a move at rest ends.
 */
async function meaningOfSilence(
  facts: OperationFacts,
  refused: Refused,
  destination: PlaceOf,
  guests: MoveGuests,
): Promise<Meaning> {
  if (!givesContent(facts.kind)) return "unclear";
  if (refused.tries < EMPTY_TRIES_MAX) return "empty";
  const seen = await guests.seek(destination);
  if (seen === "released") return "released";
  if (refused.isRecalled) return outdated(facts, refused, "no longer has the guest");
  const failed = `${destination.host} ${seen === "seen" ? UNREACHED : "is silent"}`;
  return isLiveMove(facts.kind)
    ? kept(facts, refused, { failed, word: "empty" })
    : stranded(facts, { ...refused, failed });
}

/**
 * A destination that cannot start is cleared away, and the server goes back to its source, but not if it holds the only guest of the server. It does if the source has none, and it may if the source is
 * silent. Then the destination may be able to start later, unless it says that it still waits for what the source was to hand over. An agent of an older version does not say that. The refusal may
 * also be one of Cinder or Neutron, which says nothing about the guest.
 */
async function meaningOfNoStart(facts: OperationFacts, refused: Refused, guests: MoveGuests): Promise<Meaning> {
  if (facts.source === null || !givesContent(facts.kind)) return "plain";
  const source = (await guests.lookAt(facts.source)).kind;
  if (source === "found") return "plain";
  if (refused.tries < UNHEARD_TRIES_MAX) return "unclear";
  const { failed, lacksContent } = refused;
  if (lacksContent) return source === "absent" ? stranded(facts, refused) : "plain";
  if (source === "absent") return kept(facts, refused, { failed, word: source });
  const seen = await guests.seek(facts.source);
  if (seen === "released") return "released";
  return kept(facts, refused, { failed, word: seen === "seen" ? "elsewhere" : "silent" });
}

/**
 * What it means that a source cannot be asked any longer that has said before that it has no guest: the destination was silent then, and its guest may be the last copy. Only a move
 * at rest is known to be so (`isEmptied`); a live one keeps its destination anyway.
 */
export function meaningOfEmptied(facts: OperationFacts, asked: AskedGuest): OperationEvent {
  const host = destinationOf(facts, asked.selection)?.host ?? "the destination";
  return stranded(facts, { ...asked, failed: `${host} was silent when it was asked` });
}

/**
 * What it means that an operator has forced the asked host down. A source that was told to go on after an abort (`isRecalled`) may have done so before it died. Then its guest has written
 * to the disks since, and the destination's guest must not go on with the memory of an earlier time. It is not destroyed either: if the source had not obeyed, it is the last copy.
 */
export function meaningOfFence(facts: OperationFacts, asked: AskedGuest): OperationEvent {
  const { isRecalled, step, place } = asked;
  if (!isRecalled) return { kind: "host-fenced", step, reason: `${place.host} was forced down` };
  return outdated(facts, asked, "was forced down before it answered");
}

function outdated(facts: OperationFacts, { step, selection }: AskedGuest, since: string): OperationEvent {
  return { kind: "stranded", step, reason: keptReason(describeOutdated(facts, selection, since)) };
}

function kept(
  facts: OperationFacts,
  { step, selection }: Refused,
  why: { readonly failed: string; readonly word: SourceWord },
): OperationEvent {
  // A reason that differs in its numbers alone, as in the id of a process, is the same cause.
  const cause = `${why.word}: ${why.failed.replace(/\d+/g, "")}`;
  return { kind: "kept", step, cause, reason: keptReason(describeKept(facts, selection, why)) };
}

function stranded(
  facts: OperationFacts,
  { step, selection, failed }: Pick<Refused, "step" | "selection" | "failed">,
): OperationEvent {
  return { kind: "stranded", step, reason: keptReason(describeStranded(facts, selection, failed)) };
}

function forgotten(
  facts: OperationFacts,
  { step, revision }: Refused,
  { host, look }: { readonly host: string; readonly look: GuestLook },
): OperationEvent {
  const { revision: obeyed, heard: given = 0 } = look.kind === "found" ? look : { revision: 0 };
  const reason = describeForgotten(facts, { host, obeyed, given, known: revision });
  return { kind: "forgotten", step, reason: keptReason(reason) };
}

/** A guest in one of these states exists. A guest that has run was prepared and started in commits that the database has lost. */
export const GUEST_EXISTS: readonly GuestState[] = [
  ...[GuestState.GUEST_STATE_PREPARED, GuestState.GUEST_STATE_RUNNING, GuestState.GUEST_STATE_STOPPED],
  ...[GuestState.GUEST_STATE_PAUSED, GuestState.GUEST_STATE_SUSPENDED, GuestState.GUEST_STATE_RESCUED],
];

/** The reason of a destroy that is refused for the sake of a guest that the database has forgotten. */
export const IN_QUARANTINE =
  "the guest is in quarantine, because the cell's database has lost commits about it (see berth cell quarantine, which can destroy it)";
