import type { EventFor, HostsByCell, Learnt, ReservedClaim } from "./placing.ts";
import type { PlacingRoute } from "./placing-routes.ts";

const NO_CELLS: ReadonlySet<string> = new Set();
const NO_HOSTS: HostsByCell = new Map();

/** How often a placing may find a cell closed before it leaves such cells out. Other schedulers may close cells at the same time. */
const CLOSURES_MAX = 3;

/** The initial facts of a placing. `at` is the cell in the row, and `assignment` its number. */
export function nothingLearnt(at: string | null, assignment: number): Learnt {
  return {
    at,
    assignment,
    isSole: at === null,
    isLeft: false,
    closures: 0,
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
export function serverRead({ at, assignment, reads }: Learnt, leftOut: HostsByCell): Learnt {
  return { ...nothingLearnt(at, assignment), reads, tried: leftOut };
}

/** The assigned cell is closed to the server under the present assignment, by this scheduler. */
export function cellLeft(learnt: Learnt): Learnt {
  return { ...learnt, isLeft: true };
}

/**
 * A claim has found its cell closed to the server. It was closed under the number that the request had then, so the cell may take the
 * server under a new one. A cell that stays closed was closed for good, by a delete, and is left out.
 */
export function cellFoundClosed(learnt: Learnt, cell: string): Learnt {
  const closures = learnt.closures + 1;
  const shut = closures > CLOSURES_MAX ? new Set(learnt.shut).add(cell) : learnt.shut;
  return { ...learnt, isLeft: true, closures, shut };
}

/**
 * The claim was refused, and certainly not written. If no other placing has ever assigned the request, no other claim is on its way to the
 * cell, so the cell need not be closed to the server before the request goes elsewhere. It could not be: a closure is written, too.
 */
export function writeRefused(learnt: Learnt): Learnt {
  return { ...learnt, isLeft: learnt.isSole, fresh: false };
}

/**
 * This scheduler has assigned the request to the cell: under a new number, if the request has left another cell or this one before, or if
 * another placing had assigned it. That one then cannot assign it elsewhere without learning of this one.
 */
export function assignedTo(learnt: Learnt, cell: string): Learnt {
  const { at, assignment, isLeft, isSole } = learnt;
  const isRenewed = at !== null && (at !== cell || isLeft || !isSole);
  return { ...learnt, at: cell, assignment: assignment + (isRenewed ? 1 : 0), isLeft: false };
}

/** Another scheduler has assigned the request elsewhere. */
export function assignedElsewhere(
  learnt: Learnt,
  { cell, assignment }: { readonly cell: string | null; readonly assignment: number },
): Learnt {
  return { ...learnt, at: cell, assignment, isSole: false, isLeft: false };
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
