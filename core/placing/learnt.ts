import type { EventFor, HostsByCell, Learnt, ReservedClaim } from "./placing.ts";
import type { PlacingRoute } from "./placing-routes.ts";

const NO_CELLS: ReadonlySet<string> = new Set();
const NO_HOSTS: HostsByCell = new Map();

/** The initial facts of a placing. `at` is the cell in the row. */
export function nothingLearnt(at: string | null): Learnt {
  return {
    at,
    shut: NO_CELLS,
    tried: NO_HOSTS,
    pinned: null,
    fresh: false,
    groupInFlight: false,
    unseen: [],
    rounds: 0,
    reads: 0,
    looks: 0,
    tries: 0,
    lostRaces: 0,
    givenUp: null,
  };
}

/** The server was read, perhaps again. Everything learnt about its earlier state is forgotten. */
export function serverRead({ at, reads }: Learnt, leftOut: HostsByCell): Learnt {
  return { ...nothingLearnt(at), reads, tried: leftOut };
}

/** The server can never be stored in the cell from now on. */
export function cellShut(learnt: Learnt, cell: string): Learnt {
  return { ...learnt, shut: new Set(learnt.shut).add(cell) };
}

/** Another scheduler has assigned the request elsewhere, so earlier views may be out of date. */
export function takenOver(learnt: Learnt, cell: string | null): Learnt {
  return { ...learnt, at: cell, fresh: false };
}

/** The host had no room after all, and the next choice skips it. */
export function hostLost(
  learnt: Learnt,
  { cell, host }: ReservedClaim,
  { inFlight }: EventFor<"claiming"> & { kind: "lost" },
): Learnt {
  return {
    ...learnt,
    tried: withHosts(learnt.tried, cell, [host]),
    fresh: false,
    lostRaces: learnt.lostRaces + 1,
    groupInFlight: learnt.groupInFlight || inFlight,
  };
}

/**
 * The cell has reported where the group's other servers are. The next choice skips the hosts that are full, or uses the one host where the
 * others are. An affinity group that is on several hosts, or will be when a move ends, admits no server: each of its hosts is tried once.
 */
export function groupLearnt(
  learnt: Learnt,
  { cell, host }: ReservedClaim,
  conflict: EventFor<"claiming"> & { kind: "group-conflict" },
): Learnt {
  const { policy, hosts, inFlight } = conflict;
  const full = policy === "affinity" ? (hosts.length > 1 ? [host] : []) : hosts;
  return {
    ...learnt,
    tried: withHosts(learnt.tried, cell, full),
    pinned: policy === "affinity" ? { cell, hosts } : learnt.pinned,
    fresh: false,
    lostRaces: learnt.lostRaces + 1,
    groupInFlight: learnt.groupInFlight || inFlight,
  };
}

/** The views have caught up, so facts that came only from earlier answers are forgotten. */
export function viewsSeen(route: PlacingRoute, learnt: Learnt, unseen: readonly string[]): Learnt {
  const tried = route.lostHosts === "left-out" ? learnt.tried : NO_HOSTS;
  return { ...learnt, unseen, tried, pinned: null, groupInFlight: false, fresh: true };
}

function withHosts(tried: HostsByCell, cell: string, hosts: readonly string[]): HostsByCell {
  return new Map(tried).set(cell, new Set([...(tried.get(cell) ?? []), ...hosts]));
}
