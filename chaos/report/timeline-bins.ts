import type { ClientCall } from "./client-calls.ts";
import { type Percentiles, percentilesOf } from "./percentiles.ts";
import type { ServerLife } from "./server-lives.ts";

/** The requests that were answered or given up in one piece of the run. */
export interface RequestBin {
  readonly fromMs: number;
  readonly toMs: number;
  readonly ok: number;
  readonly refused: number;
  readonly unknown: number;
  readonly answers: Percentiles | null;
  /** Times to ACTIVE of the servers that were accepted in this bin. */
  readonly creates: Percentiles | null;
}

/** Number of servers at one moment, by their state. */
export interface ServerSample {
  readonly atMs: number;
  readonly building: number;
  readonly active: number;
  readonly error: number;
}

const BINS_MAX = 120;
const BIN_WIDTHS_MS = [50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000, 3_600_000];

/** A round width that cuts the run into at most 120 bins. */
export function binWidthMs(endMs: number): number {
  const fitting = BIN_WIDTHS_MS.find((width) => endMs / width <= BINS_MAX);
  return fitting ?? Math.ceil(endMs / BINS_MAX);
}

/** Cuts the run into bins of this width, including empty ones. Their number does not depend on the number of requests. */
export function requestBins(
  { calls, lives }: { readonly calls: readonly ClientCall[]; readonly lives: readonly ServerLife[] },
  endMs: number,
  widthMs: number,
): readonly RequestBin[] {
  const count = Math.max(1, Math.ceil(endMs / widthMs));
  const binOf = (atMs: number): number => Math.min(count - 1, Math.max(0, Math.floor(atMs / widthMs)));
  const answered = Array.from({ length: count }, (): ClientCall[] => []);
  const created = Array.from({ length: count }, (): number[] => []);
  for (const call of calls) if (call.toMs !== null) answered[binOf(call.toMs)]!.push(call);
  for (const { create, end } of lives) {
    if (end?.state === "ACTIVE") created[binOf(create?.toMs ?? end.atMs - end.ms)]!.push(end.ms);
  }
  return answered.map((inBin, index) => ({
    fromMs: index * widthMs,
    toMs: (index + 1) * widthMs,
    ok: inBin.filter(({ answer }) => answer === "ok").length,
    refused: inBin.filter(({ answer }) => answer === "refused").length,
    unknown: inBin.filter(({ answer }) => answer === "unknown").length,
    answers: percentilesOf(inBin.flatMap(({ answer, fromMs, toMs }) => (answer === "unknown" ? [] : [toMs! - fromMs]))),
    creates: percentilesOf(created[index]!),
  }));
}

/** Samples the number of servers at equal intervals, `samples` + 1 times. */
export function serverSamples(lives: readonly ServerLife[], endMs: number, samples: number): readonly ServerSample[] {
  const changes = lives.flatMap(changesOf).sort((a, b) => a.atMs - b.atMs);
  const now = { building: 0, active: 0, error: 0 };
  let next = 0;
  return Array.from({ length: samples + 1 }, (_, index) => {
    const atMs = (endMs * index) / samples;
    for (; next < changes.length && changes[next]!.atMs <= atMs; next += 1) {
      const { from, to } = changes[next]!;
      if (from) now[from] -= 1;
      if (to) now[to] += 1;
    }
    return { atMs, ...now };
  });
}

type Kind = "building" | "active" | "error";
interface Change {
  readonly atMs: number;
  readonly from: Kind | null;
  readonly to: Kind | null;
}

function changesOf({ create, states }: ServerLife): readonly Change[] {
  const changes: Change[] = [];
  let now: Kind | null = null;
  const become = (atMs: number, to: Kind | null): void => {
    changes.push({ atMs, from: now, to });
    now = to;
  };
  const first = states[0];
  const acceptedMs = create?.toMs ?? null;
  if (acceptedMs !== null && create?.answer === "ok")
    become(Math.min(acceptedMs, first?.atMs ?? acceptedMs), "building");
  for (const { atMs, state } of states)
    become(atMs, state === "DELETED" ? null : state === "ACTIVE" ? "active" : "error");
  return changes;
}
