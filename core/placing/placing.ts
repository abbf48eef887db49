import type { Shortfall } from "../ledger/allocation-change.ts";
import type { AllocationItem } from "../ledger/model.ts";
import type { HostChoice } from "../scheduling/host-chooser.ts";
import type { ApproachStep, PlacingRoute } from "./placing-routes.ts";

export type HostsByCell = ReadonlyMap<string, ReadonlySet<string>>;
export type NoChoice = Extract<HostChoice, { readonly kind: "none" }>;

/** The inputs of one placing, which never change. */
export interface PlacingPlan {
  readonly route: PlacingRoute;
  /** Why no host can ever suit the request, found before any host was considered. Null when hosts are searched. */
  readonly malformed: string | null;
  /** The request is old and was tried often, so it is given up instead of being put off again. */
  readonly isOld: boolean;
  /** How long a request waits for cells that do not answer before it is refused without them. */
  readonly placeWithinMs: number;
  /** The age from which `isOld` is true. The fault shows it to people. */
  readonly giveUpMs: number;
  /** The UUID of the server under which more than the fault can be read, or null when no more is stored. */
  readonly explainedUnder: string | null;
}

/** One claim of this placing. This scheduler's views count it as used from `reserve` until `release`, or until they show it. */
export interface ReservedClaim {
  /** This is also the id of the task that is stored with the claim. */
  readonly id: string;
  readonly cell: string;
  readonly host: string;
  readonly items: readonly AllocationItem[];
}

/** The facts that one placing has learnt so far. The choice of a host depends on them, and every state contains them. */
export interface Learnt {
  /** The cell to which the request is assigned, or in which the moving server is, as far as is known. Null when there is no cell yet. */
  readonly at: string | null;
  /** The number of this assignment (see RequestRecord). A move has none, so it is 0 there. */
  readonly assignment: number;
  /**
   * Only this placing has ever assigned the request to a cell. Others take a request over under a new number, so as long as this number
   * stands, no other claim for the server is on its way to any cell.
   */
  readonly isSole: boolean;
  /**
   * The assigned cell is closed to the server under this assignment, or no claim for the server is on its way there, so the next assignment
   * gets a new number.
   */
  readonly isLeft: boolean;
  /** How often a claim has found its cell closed to the server. */
  readonly closures: number;
  /** Cells that stayed closed to the server under new assignments. */
  readonly shut: ReadonlySet<string>;
  /** Hosts that had no room after all, and excluded hosts. */
  readonly tried: HostsByCell;
  /** The cell of the other servers of an affinity group, with the hosts if they are known. Null when the cell is not known. */
  readonly pinned: { readonly cell: string; readonly hosts: readonly string[] } | null;
  /** The views were waited for, and no answer has contradicted them since. */
  readonly fresh: boolean;
  /** Since the views were last waited for, a claim was refused only because of servers of the group that are moving or being built. */
  readonly groupInFlight: boolean;
  /** Cells whose view did not catch up when the views were last waited for. */
  readonly unseen: readonly string[];
  /** How often a host was searched, or a malformed request was refused. */
  readonly rounds: number;
  /** How often the server was read. */
  readonly reads: number;
  /** How often the views were waited for. */
  readonly looks: number;
  /** The number of chosen hosts, and how many of them could not be claimed. */
  readonly tries: number;
  readonly lostRaces: number;
  /** Why the placing was given up, or null when it was not. `failed`: a store failed, so the outcome may be unknown. */
  readonly givenUp: { readonly why: string; readonly cause: "put-off" | "failed" } | null;
}

/** A refusal that is being written. `choice` is the choice that found no host, or null when no host was searched. */
export interface PlacingRefusal {
  readonly fault: string;
  readonly choice: NoChoice | null;
  /** A host may be free once servers of the group, perhaps of the same call, have settled. The request is young enough to wait for them. */
  readonly awaitsGroup?: boolean;
}

/** The next step after a cell has answered that it does not know this move. */
export type PlacingVerdict =
  | { readonly kind: "refuse"; readonly refusal: PlacingRefusal }
  | { readonly kind: "put-off"; readonly why: string };

export type PlacingEnd =
  /** The claim, the server and the task are committed. The task must still be published. */
  | { readonly kind: "placed"; readonly claim: ReservedClaim }
  /** The server was found in this cell, because its request was delivered twice. */
  | { readonly kind: "present"; readonly cell: string }
  /** Another scheduler or a user has already ended the row, so there is nothing to do. */
  | { readonly kind: "over" }
  /** No host was found, and the row says so. */
  | ({ readonly kind: "refused" } & PlacingRefusal)
  /** No host was found for a server of a multi-create, whose row does not say so yet. `cell` is the last assigned one. */
  | ({ readonly kind: "unplaced"; readonly cell: string | null } & PlacingRefusal)
  /** The placing must be tried again later. */
  | { readonly kind: "later"; readonly why: string }
  /** A store failed, so it is unknown whether the server was placed. The placing must be tried again later. */
  | { readonly kind: "failed" };

/** The state of a placing. Each state except `ended` waits for the answer to exactly one question. */
export type PlacingState = { readonly learnt: Learnt } & (
  | {
      readonly kind: /** The cell is asked for the server that must move. */
        | "reading"
        /** The views are searched for a host. */
        | "choosing"
        /** The search has used up its turn, and other requests get theirs. */
        | "pausing"
        /** No host was found. The views are waited for, so that nothing is refused because of an old view. */
        | "looking-again";
    }
  /** A step between the choice of a host and the claim there. */
  | { readonly kind: ApproachStep; readonly claim: ReservedClaim }
  /** The cell is asked to store the claim. */
  | { readonly kind: "claiming"; readonly claim: ReservedClaim }
  /** The cell has begun the move, which is being recorded in the move's row. `end` follows. */
  | { readonly kind: "noting"; readonly end: PlacingEnd }
  /** The assigned cell is being closed to the server, so that the request may be refused. */
  | { readonly kind: "withdrawing"; readonly refusal: PlacingRefusal }
  /** The cell is asked whether it has begun this move, because its answer may have been lost. */
  | { readonly kind: "asking-cell"; readonly verdict: PlacingVerdict }
  /** The move is refused unless its cell may have been asked to begin it. */
  | { readonly kind: "refusing-unasked"; readonly refusal: PlacingRefusal }
  /** The refusal is being written. */
  | { readonly kind: "refusing"; readonly refusal: PlacingRefusal }
  | { readonly kind: "ended"; readonly end: PlacingEnd }
);

export type StateOf<Kind extends PlacingState["kind"]> = PlacingState & { readonly kind: Kind };

/** The answers to the questions, and `failed` when a question could not be answered. */
export type PlacingEvent =
  /** `leftOut` contains hosts that are excluded for the server. */
  | { readonly kind: "server-read"; readonly leftOut: HostsByCell }
  | { readonly kind: "chosen"; readonly claim: ReservedClaim }
  /**
   * `leftOut` contains cells that may have room and could not be searched. `awaitsGroup` means that a host may be free once servers of the
   * group have finished moving or building. `ageMs` is the age of the request.
   */
  | {
      readonly kind: "none";
      readonly choice: NoChoice;
      readonly leftOut: readonly string[];
      readonly awaitsGroup: boolean;
      readonly ageMs: number;
    }
  | { readonly kind: "paused" }
  | { readonly kind: "resumed" }
  | { readonly kind: "joined" }
  | { readonly kind: "cell-left" }
  | { readonly kind: "pinned" }
  | { readonly kind: "pinned-elsewhere"; readonly cell: string }
  | { readonly kind: "assigned" }
  | { readonly kind: "assigned-elsewhere"; readonly cell: string | null; readonly assignment: number }
  | { readonly kind: "marked" }
  /** `xid` is the id of the cell's transaction, as its view will show it. */
  | { readonly kind: "claimed"; readonly xid: number }
  /** The cell is closed to the server under this assignment. */
  | { readonly kind: "closed" }
  /** The server has changed since it was read. */
  | { readonly kind: "server-changed" }
  /** The host had no room after all. */
  | {
      readonly kind: "lost";
      readonly why: string;
      readonly inFlight: boolean;
      readonly shortfalls: readonly Shortfall[];
    }
  /** The cell's database refused to write anything, and it is certain that nothing was written. */
  | { readonly kind: "write-refused" }
  /** The rule of the server's group refused the host. See GroupConflict. */
  | {
      readonly kind: "group-conflict";
      readonly policy: "affinity" | "anti-affinity";
      readonly hosts: readonly string[];
      readonly inFlight: boolean;
    }
  /** `unseen` contains cells whose view did not catch up. */
  | { readonly kind: "looked"; readonly unseen: readonly string[] }
  | { readonly kind: "noted" }
  | { readonly kind: "not-begun" }
  | { readonly kind: "refused" }
  | { readonly kind: "may-have-begun" }
  /** Another scheduler has assigned the request to this cell in the meantime. */
  | { readonly kind: "taken-over"; readonly cell: string | null; readonly assignment: number }
  /** The server or the move is already in this cell. */
  | { readonly kind: "found"; readonly cell: string }
  /** No host is suitable. `mayHaveBegun`: perhaps because this very move has begun. */
  | { readonly kind: "unplaceable"; readonly fault: string; readonly mayHaveBegun: boolean }
  /** The row has ended. */
  | { readonly kind: "over" }
  /** Something that the placing needs is not available now. */
  | { readonly kind: "cannot-yet"; readonly why: string }
  /** A store failed, so it is unknown whether it carried out the request. */
  | { readonly kind: "failed" };

/** A question, which exactly one event answers. Each may be asked twice, by a second delivery or after a crash. */
export type PlacingQuestion =
  | { readonly kind: "read-server" }
  | { readonly kind: "choose"; readonly learnt: Learnt }
  | { readonly kind: "pause" }
  | { readonly kind: "join"; readonly claim: ReservedClaim; readonly learnt: Learnt }
  | { readonly kind: "leave-cell"; readonly cell: string; readonly assignment: number }
  | { readonly kind: "pin-group"; readonly cell: string }
  /** Moves the assignment from the cell `from` to the cell `to`. `assignment` is the number of the old assignment, `next` that of the new one. */
  | {
      readonly kind: "assign";
      readonly from: string | null;
      readonly to: string;
      readonly assignment: number;
      readonly next: number;
    }
  | { readonly kind: "mark-asked"; readonly claim: ReservedClaim }
  | { readonly kind: "claim"; readonly claim: ReservedClaim; readonly assignment: number }
  | { readonly kind: "look-again"; readonly shut: ReadonlySet<string> }
  | { readonly kind: "note-begun" }
  | { readonly kind: "ask-cell" }
  | { readonly kind: "refuse-unasked"; readonly fault: string }
  | { readonly kind: "refuse"; readonly cell: string | null; readonly assignment: number; readonly fault: string };

/** An action that is carried out at once and has no answer. */
export type PlacingDeed =
  | { readonly kind: "reserve"; readonly claim: ReservedClaim }
  | { readonly kind: "release"; readonly claim: ReservedClaim }
  /** The claim is stored. It stays reserved until the view shows it. */
  | { readonly kind: "keep"; readonly claim: ReservedClaim; readonly xid: number }
  | { readonly kind: "learn-shortfalls"; readonly cell: string; readonly shortfalls: readonly Shortfall[] }
  | {
      readonly kind: "explain-refusal";
      readonly choice: NoChoice;
      readonly unseen: readonly string[];
      readonly learnt: Learnt;
    }
  | { readonly kind: "tell-lost"; readonly claim: ReservedClaim; readonly why: string }
  | { readonly kind: "tell-left"; readonly cell: string }
  | { readonly kind: "tell-looked-again" }
  /** A store failed each time, so the placing is given up. */
  | { readonly kind: "tell-given-up" };

export type PlacingEffect = PlacingDeed | PlacingQuestion;

export interface PlacingStep {
  readonly state: PlacingState;
  /** The effects in their order. A question comes last, and there is one unless the placing has ended. */
  readonly effects: readonly PlacingEffect[];
}

/** For each state the answers that it waits for. Each state except `ended` also accepts `failed`. */
export const AWAITED = {
  reading: ["server-read", "unplaceable", "cannot-yet"],
  choosing: ["chosen", "none", "paused", "cannot-yet"],
  pausing: ["resumed"],
  "looking-again": ["looked", "cannot-yet"],
  joining: ["joined"],
  leaving: ["cell-left", "found", "unplaceable", "cannot-yet"],
  pinning: ["pinned", "pinned-elsewhere"],
  assigning: ["assigned", "assigned-elsewhere", "over"],
  marking: ["marked", "unplaceable", "over"],
  claiming: ["claimed", "found", "closed", "server-changed", "lost", "write-refused", "group-conflict", "unplaceable"],
  noting: ["noted"],
  withdrawing: ["cell-left", "found", "unplaceable", "cannot-yet"],
  "asking-cell": ["found", "not-begun", "cannot-yet"],
  "refusing-unasked": ["refused", "may-have-begun"],
  refusing: ["refused", "taken-over", "over"],
  ended: [],
} as const satisfies Record<PlacingState["kind"], readonly PlacingEvent["kind"][]>;

export type EventFor<Kind extends PlacingState["kind"]> = Extract<
  PlacingEvent,
  { readonly kind: (typeof AWAITED)[Kind][number] }
>;

/** For each question the state that asks it. */
interface AskedIn {
  readonly "read-server": "reading";
  readonly choose: "choosing";
  readonly pause: "pausing";
  readonly join: "joining";
  readonly "leave-cell": "leaving" | "withdrawing";
  readonly "pin-group": "pinning";
  readonly assign: "assigning";
  readonly "mark-asked": "marking";
  readonly claim: "claiming";
  readonly "look-again": "looking-again";
  readonly "note-begun": "noting";
  readonly "ask-cell": "asking-cell";
  readonly "refuse-unasked": "refusing-unasked";
  readonly refuse: "refusing";
}

const QUESTIONS: { readonly [Kind in PlacingQuestion["kind"]]: true } = {
  "read-server": true,
  choose: true,
  pause: true,
  join: true,
  "leave-cell": true,
  "pin-group": true,
  assign: true,
  "mark-asked": true,
  claim: true,
  "look-again": true,
  "note-begun": true,
  "ask-cell": true,
  "refuse-unasked": true,
  refuse: true,
};

export function isQuestion(effect: PlacingEffect): effect is PlacingQuestion {
  return Object.hasOwn(QUESTIONS, effect.kind);
}

/** The answers to a question. A service that cannot answer throws, which becomes the event `failed`. */
export type AnswerTo<Kind extends PlacingQuestion["kind"]> = EventFor<AskedIn[Kind]>;
