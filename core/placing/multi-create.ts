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
  | { readonly kind: "unplaced"; readonly fault: string; readonly cell: string | null };

export type MultiCreateVerdict = { readonly found: number; readonly wanted: number } & (
  | { readonly kind: "enough" }
  /** It is too early to decide that too few found a host. */
  | { readonly kind: "wait"; readonly why: string }
  /**
   * Too few found a host. `at` has the cells to which the others were last assigned; if that changes, another scheduler is placing them.
   */
  | { readonly kind: "short"; readonly fault: string; readonly at: ReadonlyMap<string, string | null> }
);

/** Whether enough servers found a host. Servers that the user deletes before they are placed reduce the wanted number. */
export function judgeMultiCreate({ minCount, servers, ends }: PlacedTogether): MultiCreateVerdict {
  const found = ends.filter(({ end }) => end.kind === "placed" || end.kind === "present").length;
  const gone = servers - ends.filter(({ end }) => end.kind !== "over").length;
  const wanted = Math.max(0, Math.min(minCount, servers - gone));
  if (found >= wanted) return { kind: "enough", found, wanted };
  const at = new Map<string, string | null>();
  let reason: string | null = null;
  for (const { serverUuid, end } of ends) {
    if (end.kind === "later") return { kind: "wait", why: end.why, found, wanted };
    if (end.kind !== "unplaced") continue;
    at.set(serverUuid, end.cell);
    reason ??= end.fault;
  }
  const counts = `Only ${found} of at least ${wanted} servers of this call found a host, so all of them were released.`;
  return { kind: "short", fault: `${reason ?? "No valid host was found."} ${counts}`, found, wanted, at };
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
