import type { Shortfall } from "../ledger/allocation-change.ts";
import type { AllocationItem } from "../ledger/model.ts";
import type { HostChoice } from "../scheduling/host-chooser.ts";
import type { ApproachStep, PlacingRoute } from "./placing-routes.ts";

export type HostsByCell = ReadonlyMap<string, ReadonlySet<string>>;
export type NoChoice = Extract<HostChoice, { readonly kind: "none" }>;

/** What is fixed for one placing from its beginning to its end. */
export interface PlacingPlan {
  readonly route: PlacingRoute;
  /** Why no host can ever suit the request, found before any host was looked at; null: hosts are looked for. */
  readonly malformed: string | null;
  /** It is old and was tried often: instead of being put off once more it is given up. */
  readonly isOld: boolean;
  /** How long a request waits for cells that do not answer before it is refused by the others. */
  readonly placeWithinMs: number;
  /** The age from which `isOld` counts, which a person reads in the fault. */
  readonly giveUpMs: number;
  /** The server under whose uuid people can ask for more than the fault says; null: nothing more is kept. */
  readonly explainedUnder: string | null;
}

/** One claim of this placing. The views of this scheduler count it as used from `reserve` until `release`, or until they show it. */
export interface ReservedClaim {
  /** Also the id of the task that the claim is stored with. */
  readonly id: string;
  readonly cell: string;
  readonly host: string;
  readonly items: readonly AllocationItem[];
}

/** What one placing has learnt so far. The choice of a host depends on it, and every state carries it. */
export interface Learnt {
  /** The cell that the request is assigned to, or that the server lives in, as far as is known; null: no cell yet. */
  readonly at: string | null;
  /** Cells in which the server can never be stored any more. */
  readonly shut: ReadonlySet<string>;
  /** Hosts that had no room after all, and hosts that are out of the question. */
  readonly tried: HostsByCell;
  /** The cell, and the hosts if they are known, of the other servers of an affinity group; null: not known. */
  readonly pinned: { readonly cell: string; readonly hosts: readonly string[] } | null;
  /** The views were waited for, and no answer has contradicted them since. */
  readonly fresh: boolean;
  /** Since the last look a claim was refused only because of servers of the group that are on their way. */
  readonly groupInFlight: boolean;
  /** Cells whose view did not catch up at the last look. */
  readonly unseen: readonly string[];
  /** Times that a host was looked for, or a malformed request was refused. */
  readonly rounds: number;
  /** Times that the server was read. */
  readonly reads: number;
  /** Times that the views were waited for. */
  readonly looks: number;
  /** Hosts that were chosen, and how many of them could not be claimed. */
  readonly tries: number;
  readonly lostRaces: number;
  /** Why the placing was given up; null: it was not. `failed`: a store failed, so the outcome may be unknown. */
  readonly givenUp: { readonly why: string; readonly cause: "put-off" | "failed" } | null;
}

/** A refusal that is being written. `choice`: the choice that found no host; null: no host was looked for. */
export interface PlacingRefusal {
  readonly fault: string;
  readonly choice: NoChoice | null;
}

/** What follows once a cell has said that it knows nothing of this move. */
export type PlacingVerdict =
  | { readonly kind: "refuse"; readonly refusal: PlacingRefusal }
  | { readonly kind: "put-off"; readonly why: string };

export type PlacingEnd =
  /** The claim, the server and the task are committed; the task is still to be published. */
  | { readonly kind: "placed"; readonly claim: ReservedClaim }
  /** The server was found in this cell: its request was delivered twice. */
  | { readonly kind: "present"; readonly cell: string }
  /** The row ended earlier, by another scheduler or by a user: there is nothing to do. */
  | { readonly kind: "over" }
  /** No host was found, and the row says so. */
  | ({ readonly kind: "refused" } & PlacingRefusal)
  /** No host was found for a server of a multi-create, whose row still says nothing. `cell`: where it was assigned to last. */
  | ({ readonly kind: "unplaced"; readonly cell: string | null } & PlacingRefusal)
  /** To be tried again later. */
  | { readonly kind: "later"; readonly why: string }
  /** A store failed, so nobody knows whether the server was placed: to be tried again later. */
  | { readonly kind: "failed" };

/** Where a placing is. Each state but `ended` waits for the answer to exactly one question. */
export type PlacingState = { readonly learnt: Learnt } & (
  | {
      readonly kind: /** The cell is asked for the server that is to move. */
        | "reading"
        /** A host is looked for in the views. */
        | "choosing"
        /** The search has used up its turn, and others have theirs. */
        | "pausing"
        /** No host was found; the views are waited for, so that nothing is refused by an old one. */
        | "looking-again";
    }
  /** On the way from the choice of a host to the claim there. */
  | { readonly kind: ApproachStep; readonly claim: ReservedClaim }
  /** The cell is asked to store the claim. */
  | { readonly kind: "claiming"; readonly claim: ReservedClaim }
  /** The cell has begun the move; the move's row is being told. `end` follows. */
  | { readonly kind: "noting"; readonly end: PlacingEnd }
  /** The cell that the request is assigned to is shut for the server, so that the request may be refused. */
  | { readonly kind: "withdrawing"; readonly refusal: PlacingRefusal }
  /** The cell is asked whether it has begun this move, whose answer may have been lost. */
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
  /** `leftOut`: hosts that are out of the question for the server. */
  | { readonly kind: "server-read"; readonly leftOut: HostsByCell }
  | { readonly kind: "chosen"; readonly claim: ReservedClaim }
  /**
   * `leftOut`: cells that may have room and could not be looked at. `awaitsGroup`: a host may be free once servers of the group that are on
   * their way have arrived. `ageMs`: of the request.
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
  | { readonly kind: "assigned-elsewhere"; readonly cell: string | null }
  | { readonly kind: "marked" }
  /** `xid`: the transaction of the cell, as its view will show it. */
  | { readonly kind: "claimed"; readonly xid: number }
  /** The cell is shut for the server. */
  | { readonly kind: "closed" }
  /** The server is no longer as it was read. */
  | { readonly kind: "server-changed" }
  /** The host had no room after all. */
  | {
      readonly kind: "lost";
      readonly why: string;
      readonly inFlight: boolean;
      readonly shortfalls: readonly Shortfall[];
    }
  /** The rule of the server's group refused the host; see GroupConflict. */
  | {
      readonly kind: "group-conflict";
      readonly policy: "affinity" | "anti-affinity";
      readonly hosts: readonly string[];
      readonly inFlight: boolean;
    }
  /** `unseen`: cells whose view did not catch up. */
  | { readonly kind: "looked"; readonly unseen: readonly string[] }
  | { readonly kind: "noted" }
  | { readonly kind: "not-begun" }
  | { readonly kind: "refused" }
  | { readonly kind: "may-have-begun" }
  /** Another scheduler has assigned the request to this cell in the meantime. */
  | { readonly kind: "taken-over"; readonly cell: string | null }
  /** The server, or the move, is in this cell already. */
  | { readonly kind: "found"; readonly cell: string }
  /** No host will do. `mayHaveBegun`: perhaps because this very move has begun. */
  | { readonly kind: "unplaceable"; readonly fault: string; readonly mayHaveBegun: boolean }
  /** The row has ended. */
  | { readonly kind: "over" }
  /** Something that the placing needs cannot be had now. */
  | { readonly kind: "cannot-yet"; readonly why: string }
  /** A store failed: nobody knows whether it did what it was asked. */
  | { readonly kind: "failed" };

/** A question: exactly one event answers it. Each may be asked twice, by a second delivery or after a crash. */
export type PlacingQuestion =
  | { readonly kind: "read-server" }
  | { readonly kind: "choose"; readonly learnt: Learnt }
  | { readonly kind: "pause" }
  | { readonly kind: "join"; readonly claim: ReservedClaim; readonly learnt: Learnt }
  | { readonly kind: "leave-cell"; readonly cell: string }
  | { readonly kind: "pin-group"; readonly cell: string }
  | { readonly kind: "assign"; readonly from: string | null; readonly to: string }
  | { readonly kind: "mark-asked"; readonly claim: ReservedClaim }
  | { readonly kind: "claim"; readonly claim: ReservedClaim }
  | { readonly kind: "look-again"; readonly shut: ReadonlySet<string> }
  | { readonly kind: "note-begun" }
  | { readonly kind: "ask-cell" }
  | { readonly kind: "refuse-unasked"; readonly fault: string }
  | { readonly kind: "refuse"; readonly cell: string | null; readonly fault: string };

/** What is done at once and answers nothing. */
export type PlacingDeed =
  | { readonly kind: "reserve"; readonly claim: ReservedClaim }
  | { readonly kind: "release"; readonly claim: ReservedClaim }
  /** The claim is stored: it stays reserved until the view shows it. */
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
  /** A store failed each time: the placing is given up. */
  | { readonly kind: "tell-given-up" };

export type PlacingEffect = PlacingDeed | PlacingQuestion;

export interface PlacingStep {
  readonly state: PlacingState;
  /** In this order; a question comes last, and there is one unless the placing has ended. */
  readonly effects: readonly PlacingEffect[];
}

/** By state: the answers that it waits for. Each state but `ended` takes `failed`, too. */
export const AWAITED = {
  reading: ["server-read", "unplaceable", "cannot-yet"],
  choosing: ["chosen", "none", "paused", "cannot-yet"],
  pausing: ["resumed"],
  "looking-again": ["looked", "cannot-yet"],
  joining: ["joined"],
  leaving: ["cell-left", "found", "cannot-yet"],
  pinning: ["pinned", "pinned-elsewhere"],
  assigning: ["assigned", "assigned-elsewhere", "over"],
  marking: ["marked", "unplaceable", "over"],
  claiming: ["claimed", "found", "closed", "server-changed", "lost", "group-conflict", "unplaceable"],
  noting: ["noted"],
  withdrawing: ["cell-left", "found", "cannot-yet"],
  "asking-cell": ["found", "not-begun", "cannot-yet"],
  "refusing-unasked": ["refused", "may-have-begun"],
  refusing: ["refused", "taken-over", "over"],
  ended: [],
} as const satisfies Record<PlacingState["kind"], readonly PlacingEvent["kind"][]>;

export type EventFor<Kind extends PlacingState["kind"]> = Extract<
  PlacingEvent,
  { readonly kind: (typeof AWAITED)[Kind][number] }
>;

/** By question: the state in which it is asked. */
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

/** The answers to a question. Whoever cannot answer it throws instead, which becomes the event `failed`. */
export type AnswerTo<Kind extends PlacingQuestion["kind"]> = EventFor<AskedIn[Kind]>;
