import type { ClientOperation } from "../history-line.ts";
import type { ClientCall } from "./client-calls.ts";

/** A time in which requests were made and none succeeded. */
export interface ServiceGap {
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * The longest time without service: from the moment that a client began to wait (or the last success, if that came later) to the next
 * success, or to the end of the last request. Times without any request do not count. `ops` limits the figure to these operations. Null
 * when there was no request.
 */
export function longestGap(calls: readonly ClientCall[], ops?: readonly ClientOperation[]): ServiceGap | null {
  const moments = calls.filter(({ op }) => ops === undefined || ops.includes(op)).flatMap(momentsOf);
  moments.sort((a, b) => a.atMs - b.atMs);
  const [first] = moments;
  if (first === undefined) return null;
  let longest: ServiceGap = { fromMs: first.atMs, toMs: first.atMs };
  let waiting = 0;
  /** Null while no client waits and the last one was served. */
  let outSinceMs: number | null = null;
  const closeAt = (atMs: number): void => {
    if (outSinceMs !== null && atMs - outSinceMs > longest.toMs - longest.fromMs)
      longest = { fromMs: outSinceMs, toMs: atMs };
  };
  for (const { atMs, kind } of moments) {
    waiting += kind === "asked" ? 1 : -1;
    if (kind === "asked") outSinceMs ??= atMs;
    if (kind !== "served") continue;
    closeAt(atMs);
    outSinceMs = waiting > 0 ? atMs : null;
  }
  closeAt(moments.at(-1)!.atMs);
  return longest;
}

function momentsOf({ fromMs, toMs, answer }: ClientCall) {
  const asked = { atMs: fromMs, kind: "asked" } as const;
  if (toMs === null) return [asked];
  return [asked, { atMs: toMs, kind: answer === "ok" ? "served" : "failed" } as const];
}
