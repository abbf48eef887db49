import type { RequestRecord } from "../stores/api/api-store.ts";
import type { PlacingEnd } from "./placing.ts";

/**
 * How the servers of one call (`min_count`, `max_count`) are placed: at least `min_count` of them, or none.
 *
 * Their claims are transactions of several cells, so nobody can commit them as one. Instead: (1) each server is placed by a machine of its own,
 * and no task is published; (2) what becomes of all of them is decided in the API database, once, by the first scheduler that gets so far; (3)
 * every scheduler carries out what was decided. `placed`: the tasks are published, and the servers that found no host end in ERROR. `refused`:
 * whatever was claimed is given back, and all end in ERROR. Each part may be repeated, by several schedulers at once, and after a crash
 * between any two: a server that was placed is found present, and the decision stands.
 */
export interface PlacedTogether {
  /** How many the user wants at least. */
  readonly minCount: number;
  /** The servers of the call, those that have ended included. */
  readonly servers: number;
  /** What became of the servers that had not ended. */
  readonly ends: readonly { readonly serverUuid: string; readonly end: PlacedServerEnd }[];
}

/** What became of one server, as far as the decision depends on it. */
export type PlacedServerEnd =
  | { readonly kind: Exclude<PlacingEnd["kind"], "later" | "unplaced"> }
  | { readonly kind: "later"; readonly why: string }
  | { readonly kind: "unplaced"; readonly fault: string; readonly cell: string | null };

export type MultiCreateVerdict = { readonly found: number; readonly wanted: number } & (
  | { readonly kind: "enough" }
  /** It is too early to say that too few found a host. */
  | { readonly kind: "wait"; readonly why: string }
  /** Too few found a host. `at`: where the others were assigned to last; should that change, another scheduler is placing them. */
  | { readonly kind: "short"; readonly fault: string; readonly at: ReadonlyMap<string, string | null> }
);

/** Whether enough servers found a host. A user who deletes some of them before they are placed wants so many fewer. */
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
  const counts = `Only ${found} of at least ${wanted} servers of this call found a host, so all were given back.`;
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
