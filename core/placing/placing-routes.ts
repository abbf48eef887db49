/** The steps between the choice of a host and the claim there. This scheduler's views count the claim as used meanwhile. */
export type ApproachStep =
  /** The other servers of the multi-create choose their hosts too. */
  | "joining"
  /** The cell that the request was assigned to before is shut for the server. */
  | "leaving"
  /** The affinity group is pinned to the cell. */
  | "pinning"
  /** The request is assigned to the cell. */
  | "assigning"
  /** The row of the move notes that its cell is about to be asked. */
  | "marking";

/**
 * How one kind of work is placed: the steps of the machine that it takes. Boots and moves differ here, and in the answers to the
 * questions, and nowhere else.
 */
export interface PlacingRoute {
  /** What a person reads that was given up. */
  readonly name: "request" | "move";
  /** Where it begins: a server that is to move is read from its cell first. */
  readonly begins: "choosing" | "reading";
  /** What is done between the choice of a host and the claim, in this order. */
  readonly approach: readonly ApproachStep[];
  /** The first thing that is done when it is refused: its cell is shut for the server, or asked whether it has begun the move. */
  readonly beforeRefusal: "withdrawing" | "asking-cell";
  /** Whether a refusal is written to the row, or left to whoever places the servers of one call together. */
  readonly refusals: "written" | "reported";
  /** Where giving up begins. */
  readonly givesUpBy: "withdrawing" | "refusing-unasked";
  /** A server that is in its cell is found there by anybody; of a move its row is told. */
  readonly arrivals: "found" | "noted";
  /** Times that the views are waited for before a refusal. */
  readonly looksMax: number;
  /** Whether hosts that had no room may be chosen again after a look at fresh views. */
  readonly lostHosts: "tried-again" | "left-out";
  /** Whether a request waits for servers of its group that are on their way. */
  readonly groupInFlight: "waited-for" | "ignored";
}

/** A new server. */
export const BOOT: PlacingRoute = {
  name: "request",
  begins: "choosing",
  approach: ["leaving", "assigning"],
  beforeRefusal: "withdrawing",
  refusals: "written",
  givesUpBy: "withdrawing",
  arrivals: "found",
  looksMax: 5,
  lostHosts: "tried-again",
  groupInFlight: "waited-for",
};

/** A new server of an affinity group, which stays in one cell. */
export const BOOT_OF_AFFINITY_GROUP: PlacingRoute = { ...BOOT, approach: ["leaving", "pinning", "assigning"] };

/**
 * One of the servers of a multi-create. The servers wait for each other before any of them is built, so if they waited for their group, too,
 * nothing would ever settle.
 */
export function routeInMultiCreate(alone: PlacingRoute): PlacingRoute {
  return { ...alone, approach: ["joining", ...alone.approach], refusals: "reported", groupInFlight: "ignored" };
}

/** A server that lives and is to move within its cell. */
export const MOVE: PlacingRoute = {
  name: "move",
  begins: "reading",
  approach: ["marking"],
  beforeRefusal: "asking-cell",
  refusals: "written",
  givesUpBy: "refusing-unasked",
  arrivals: "noted",
  looksMax: 1,
  lostHosts: "left-out",
  groupInFlight: "waited-for",
};
