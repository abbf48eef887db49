/** The steps between the choice of a host and the claim there. Meanwhile this scheduler's views count the claim as used. */
export type ApproachStep =
  /** The other servers of the multi-create choose their hosts, too. */
  | "joining"
  /** The previously assigned cell is closed to the server. */
  | "leaving"
  /** The affinity group is pinned to the cell. */
  | "pinning"
  /** The request is assigned to the cell. */
  | "assigning"
  /** The move's row records that its cell is about to be asked. */
  | "marking";

/**
 * How one kind of work is placed: the steps that the machine takes for it. Boots and moves differ only here and in the answers to the
 * questions.
 */
export interface PlacingRoute {
  /** The name of the work in messages to people about giving it up. */
  readonly name: "request" | "move";
  /** The first state. A server that must move is first read from its cell. */
  readonly begins: "choosing" | "reading";
  /** The steps between the choice of a host and the claim, in this order. */
  readonly approach: readonly ApproachStep[];
  /** The first step of a refusal: either the cell is closed to the server, or it is asked whether it has begun the move. */
  readonly beforeRefusal: "withdrawing" | "asking-cell";
  /** Whether a refusal is written to the row, or reported to the caller that places the servers of one call together. */
  readonly refusals: "written" | "reported";
  /** The first state when the work is given up. */
  readonly givesUpBy: "withdrawing" | "refusing-unasked";
  /** Any scheduler finds a server that is in its cell. The arrival of a move is recorded in its row. */
  readonly arrivals: "found" | "noted";
  /** How often the views are waited for before a refusal. */
  readonly looksMax: number;
  /** Whether hosts that had no room may be chosen again after waiting for fresh views. */
  readonly lostHosts: "tried-again" | "left-out";
  /**
   * Whether a request waits for servers of its group that are moving or being built, or reports them to the caller that places the servers
   * of one call together.
   */
  readonly groupInFlight: "waited-for" | "reported";
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
 * One of the servers of a multi-create. None of them is built before all of them are decided, so if one of them waited for its group, it
 * could wait for the others of its own call. The caller knows which servers are of the call.
 */
export function routeInMultiCreate(alone: PlacingRoute): PlacingRoute {
  return { ...alone, approach: ["joining", ...alone.approach], refusals: "reported", groupInFlight: "reported" };
}

/** A server that must move within its cell. */
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
