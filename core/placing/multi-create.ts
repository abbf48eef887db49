import type { RequestRecord } from "../stores/api/api-store.ts";
import type { PlacingEnd } from "./placing.ts";

/**
 * How the servers of one call (`min_count`, `max_count`) are placed: at least `min_count` of them, or none.
 *
 * Their claims are transactions of several cells, so they cannot be committed as one. Instead: (1) each server is placed by a state machine
 * of its own, and no task is published; (2) the fate of all of them is decided once, in the API database, by the first scheduler that gets
 * there; (3) every scheduler carries out that decision. `placed`: the tasks are published, and the servers that found no host end in ERROR.
 * `refused`: all claims are released, and all servers end in ERROR. Each part may be repeated, by several schedulers at once, and after a
 * crash between any two: a placed server is found present, and the decision stands.
 */
export interface PlacedTogether {
  /** The minimum number of servers that the user wants. */
  readonly minCount: number;
  /** The number of servers in the call, including those that have ended. */
  readonly servers: number;
  /** The results of the servers that had not ended. */
  readonly ends: readonly { readonly serverUuid: string; readonly end: PlacedServerEnd }[];
}

/** The result of one server, as far as the decision depends on it. */
export type PlacedServerEnd =
  | { readonly kind: Exclude<PlacingEnd["kind"], "later" | "unplaced"> }
  | { readonly kind: "later"; readonly why: string }
  /** `awaitsGroup`: a host may be free once servers of the group have settled. */
  | { readonly kind: "unplaced"; readonly fault: string; readonly cell: string | null; readonly awaitsGroup: boolean };

export type MultiCreateVerdict = { readonly found: number; readonly wanted: number } & (
  | { readonly kind: "enough" }
  /** It is too early to decide that too few found a host. */
  | { readonly kind: "wait"; readonly why: string }
  /**
   * Too few found a host. `at` has the cells to which the others were last assigned; if that changes, another scheduler is placing them.
   * `awaitsGroup`: enough of them may find one once other servers of their group have settled.
   */
  | {
      readonly kind: "short";
      readonly fault: string;
      readonly at: ReadonlyMap<string, string | null>;
      readonly awaitsGroup: boolean;
    }
);

/** Whether enough servers found a host. Servers that the user deletes before they are placed reduce the wanted number. */
export function judgeMultiCreate({ minCount, servers, ends }: PlacedTogether): MultiCreateVerdict {
  const found = ends.filter(({ end }) => end.kind === "placed" || end.kind === "present").length;
  const gone = servers - ends.filter(({ end }) => end.kind !== "over").length;
  const wanted = Math.max(0, Math.min(minCount, servers - gone));
  if (found >= wanted) return { kind: "enough", found, wanted };
  const at = new Map<string, string | null>();
  let reason: string | null = null;
  let awaiting = 0;
  for (const { serverUuid, end } of ends) {
    if (end.kind === "later") return { kind: "wait", why: end.why, found, wanted };
    if (end.kind !== "unplaced") continue;
    at.set(serverUuid, end.cell);
    reason ??= end.fault;
    if (end.awaitsGroup) awaiting += 1;
  }
  const counts = `Only ${found} of at least ${wanted} servers of this call found a host, so all of them were released.`;
  const fault = `${reason ?? "No valid host was found."} ${counts}`;
  return { kind: "short", fault, found, wanted, at, awaitsGroup: found + awaiting >= wanted };
}

/** A call whose servers are placed together, when it is compared with other calls that have servers in the same group. */
export interface GroupCall {
  readonly id: string;
  readonly createdAtMs: number;
}

/** The other servers of a group that have not settled. */
export interface GroupOthers {
  /** Whether there are any. */
  readonly inFlight: boolean;
  /** The undecided calls to which some of them belong. */
  readonly calls: readonly GroupCall[];
}

/**
 * Whether a call for which too few servers found a host waits for other servers of its group, or is refused now.
 *
 * Two calls may hold hosts that both of them need, and neither would ever give its hosts back. So of these the oldest one waits, and the
 * others are refused, which releases their hosts. A call that holds no host keeps nobody waiting, so it may wait for any other call.
 */
export function mayAwaitGroup(call: GroupCall & { readonly found: number }, others: GroupOthers): boolean {
  if (!others.inFlight) return false;
  return call.found === 0 || others.calls.every((other) => isOlder(call, other));
}

function isOlder(one: GroupCall, other: GroupCall): boolean {
  return one.createdAtMs === other.createdAtMs ? one.id < other.id : one.createdAtMs < other.createdAtMs;
}

/** Whether a request waits to be placed, or was sent to a cell. */
export function isOpenRequest({ state }: Pick<RequestRecord, "state">): boolean {
  return state === "accepted" || state === "dispatched";
}

/** Whether another scheduler has assigned any of these servers meanwhile. */
export function isPlacedByOthers(
  records: readonly Pick<RequestRecord, "serverUuid" | "state" | "cell">[],
  at: ReadonlyMap<string, string | null>,
): boolean {
  return records.some((record) => isOpenRequest(record) && record.cell !== at.get(record.serverUuid));
}
