import type { Stage, Target } from "./operation-routes.ts";
import type { ServerStatus } from "./server.ts";

/**
 * The status of a server after an operation. `as-before`: the status that it had before the operation. `as-before-or-healed`: the same, but a
 * server that was in ERROR becomes ACTIVE.
 */
export type FinalStatus = ServerStatus | "as-before" | "as-before-or-healed";

/** The statuses of an operation's migration by the stage or end that it has come to; `any` is for those that are not named. */
export type MigrationStatuses = Partial<Record<Exclude<Target, "another">, string>> & { readonly any: string };

/** What an operation of a kind writes, besides its stages. `operation-writes.ts` reads it. */
export interface OperationTraits {
  /** A move brings the server to a destination that has alternates, and has a migration of its own. */
  readonly isMove: boolean;
  /**
   * The host that the server is on when the operation begins. `asked`: nothing is started elsewhere before that host has answered. `fenced`: an
   * operator has stated that nothing runs there, so it is not asked. `none`: there is no such host.
   */
  readonly source: "asked" | "fenced" | "none";
  /**
   * What a success does with the allocations. `kept`: nothing. `settled`: the resources that a move holds beyond those of its destination are given
   * back. `offloaded`: the server keeps neither its host nor its allocation.
   */
  readonly allocation: "kept" | "settled" | "offloaded";
  /**
   * Whether the operation is a move that waits for its confirmation when it has succeeded (`awaited`), one that ends such a wait (`ended`), one that is done meanwhile
   * and leaves the move waiting (`unchanged`), or none of these (`none`).
   */
  readonly confirmation: "awaited" | "ended" | "unchanged" | "none";
  /** Null for an operation that belongs to no migration. Source: the statuses of Nova's Migration objects, by kind of move. */
  readonly migration: MigrationStatuses | null;
  /**
   * The new spec of the server. `requested`: the request's one, or the present one when the request has none. `restored`: the one before the move
   * that is reverted, with the present volumes. `with-volume` and `without-volume`: the requested one, to which the volume of the request was added, or without that volume. A
   * volume that was there already is replaced by that of the request.
   */
  readonly newSpec: "requested" | "restored" | "with-volume" | "without-volume";
  /** The stages and ends at which the server gets its new spec. A move gives it when the destination starts. */
  readonly newSpecAt: readonly Target[];
  /** The stages and ends at which the server gets its former spec again. A move gives it on the way back. */
  readonly formerSpecAt: readonly Target[];
  /** A success ends the replacement of the operation's volume, which then has its own id alone. */
  readonly endsReplacement: boolean;
  readonly whenGivenUp: {
    readonly status: FinalStatus;
    /** The status of an operation that is given up at one of these stages, if it is another one. */
    readonly statusFrom?: Partial<Record<Stage, FinalStatus>>;
    /** How the note on the migration begins. Null for an operation that leaves none. */
    readonly note: string | null;
  };
  /** The stage that the operation is stored with when it begins, if it is not the first stage of its route. */
  readonly beginsStoredAs: Stage | null;
}

/** How the note on a migration begins whose revert was given up. */
export const NOT_REVERTED = "Not reverted";

const UNCHANGED = { status: "as-before", note: null } as const;

/** An operation at the server's own host, which belongs to no migration. */
export const IN_PLACE = {
  isMove: false,
  source: "asked",
  allocation: "kept",
  confirmation: "none",
  migration: null,
  newSpec: "requested",
  newSpecAt: [],
  formerSpecAt: [],
  endsReplacement: false,
  whenGivenUp: UNCHANGED,
  beginsStoredAs: null,
} as const satisfies OperationTraits;

const COLD_STAGES = { preparing: "pre-migrating", "handing-over": "migrating", any: "post-migrating" } as const;
const migrationOfMove = (success: string) => ({ ...COLD_STAGES, succeed: success, "succeed-keeping": success });

/** A move whose source is destroyed at its end. */
export const MOVING = {
  ...IN_PLACE,
  isMove: true,
  allocation: "settled",
  migration: migrationOfMove("completed"),
} as const satisfies OperationTraits;

export const MOVING_LIVE = {
  ...MOVING,
  migration: { ...MOVING.migration, preparing: "preparing", "handing-over": "running", recalling: "running" },
} as const satisfies OperationTraits;

/** A move whose source is kept until the move is confirmed or reverted. */
export const MOVING_UNCONFIRMED = {
  ...MOVING,
  allocation: "kept",
  confirmation: "awaited",
  migration: migrationOfMove("finished"),
} as const satisfies OperationTraits;

export const MOVING_FROM_FENCED = {
  ...MOVING,
  source: "fenced",
  allocation: "kept",
  migration: migrationOfMove("done"),
} as const satisfies OperationTraits;

export const MOVING_FROM_NOWHERE = { ...MOVING, source: "none", allocation: "kept" } as const satisfies OperationTraits;

/**
 * A confirmation begins with the stored stage of older versions, so that their conductors know it. A conductor of this version asks the destination
 * first (`stageOnRoute`).
 */
export const CONFIRMING_MOVE = {
  ...IN_PLACE,
  beginsStoredAs: "cleaning",
  allocation: "settled",
  confirmation: "ended",
  migration: { succeed: "confirmed", "succeed-keeping": "confirmed", "give-up": "finished", any: "confirming" },
  whenGivenUp: { status: "VERIFY_RESIZE", note: "Not confirmed" },
} as const satisfies OperationTraits;

export const REVERTING_MOVE = {
  ...IN_PLACE,
  newSpec: "restored",
  confirmation: "ended",
  migration: { succeed: "reverted", lost: "reverted", "give-up": "finished", any: "reverting" },
  whenGivenUp: { status: "VERIFY_RESIZE", note: NOT_REVERTED },
} as const satisfies OperationTraits;

export const LEAVING_HOST = { ...IN_PLACE, allocation: "offloaded" } as const satisfies OperationTraits;

/** The guest has been stopped before its disk is copied, so a server whose disk is not copied is shelved where it is. */
export const LEAVING_IMAGE = {
  ...LEAVING_HOST,
  newSpecAt: ["succeed", "succeed-keeping"],
  whenGivenUp: { ...UNCHANGED, statusFrom: { snapshotting: "SHELVED" } },
} as const satisfies OperationTraits;

/** The volume may be connected to the guest when nobody knows how the operation ended, so the spec has it then, too. */
export const GAINING_VOLUME = {
  ...IN_PLACE,
  newSpec: "with-volume",
  newSpecAt: ["succeed", "lost"],
} as const satisfies OperationTraits;

export const LOSING_VOLUME = {
  ...IN_PLACE,
  newSpec: "without-volume",
  newSpecAt: ["succeed"],
} as const satisfies OperationTraits;

/** The move that waits has two guests. */
export const GAINING_VOLUME_UNCONFIRMED = {
  ...GAINING_VOLUME,
  confirmation: "unchanged",
} as const satisfies OperationTraits;

/** The move that waits has two guests. */
export const LOSING_VOLUME_UNCONFIRMED = {
  ...LOSING_VOLUME,
  confirmation: "unchanged",
} as const satisfies OperationTraits;

/** The server is on no host. */
export const GAINING_VOLUME_OFFLOADED = { ...GAINING_VOLUME, source: "none" } as const satisfies OperationTraits;

/** The server is on no host. */
export const LOSING_VOLUME_OFFLOADED = { ...LOSING_VOLUME, source: "none" } as const satisfies OperationTraits;

/** The spec has the volume's new size. */
export const EXTENDING_VOLUME = {
  ...IN_PLACE,
  newSpec: "with-volume",
  newSpecAt: ["succeed"],
} as const satisfies OperationTraits;

/**
 * The spec says from which moment on the guest uses the other volume, and no longer says so when that one has got the volume's id. It also says so when nobody
 * knows which one the guest uses, so that both stay with the server.
 */
export const REPLACING_VOLUME = {
  ...IN_PLACE,
  newSpec: "with-volume",
  newSpecAt: ["completing", "succeed", "lost"],
  endsReplacement: true,
} as const satisfies OperationTraits;

/** The move that waits has two guests. The volume has its own id alone as soon as Cinder was told, before the source's guest gets it. */
export const REPLACING_VOLUME_UNCONFIRMED = {
  ...REPLACING_VOLUME,
  newSpecAt: ["completing", "attaching-kept", "succeed", "lost"],
  confirmation: "unchanged",
} as const satisfies OperationTraits;

/** The server has the volume already, and goes on waiting for its confirmation. */
export const RECONNECTING_VOLUME = { ...IN_PLACE, confirmation: "unchanged" } as const satisfies OperationTraits;

/** From then on, no guest of the server uses another file of the volume. */
export const SWITCHING_VOLUME = {
  ...IN_PLACE,
  newSpec: "with-volume",
  newSpecAt: ["succeed", "lost"],
} as const satisfies OperationTraits;

/** The guest uses the file already, so the spec names it from the beginning, until the guest has gone back to its former file. */
export const SWITCHED_VOLUME = {
  ...SWITCHING_VOLUME,
  newSpecAt: ["announcing", "succeed", "lost"],
  formerSpecAt: ["give-up"],
} as const satisfies OperationTraits;

/** The spec has said so far that nobody knows which of two volumes the guest uses. If this does not end, it goes on saying so. */
export const SETTLING_VOLUME = {
  ...IN_PLACE,
  newSpec: "with-volume",
  newSpecAt: ["succeed"],
  endsReplacement: true,
} as const satisfies OperationTraits;

/** An operator has stated which volume the guest has used. The host must be forced down, so that no guest there goes on with another one. */
export const STATING_VOLUME = { ...SETTLING_VOLUME, source: "fenced" } as const satisfies OperationTraits;

/** The task state at each stage; `any` is for the stages that are not named. */
export type TaskStates = Partial<Record<Stage, string>> & { readonly any: string };
