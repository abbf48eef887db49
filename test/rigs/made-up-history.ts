import type { Answered, ChaosFault, HistoryLine } from "../../chaos/history-line.ts";
import { seededRandom } from "../../core/scheduling/seeded-random.ts";

export interface MadeUpRun {
  readonly seed?: number;
  readonly creates?: number;
  readonly seconds?: number;
  readonly faults?: readonly MadeUpFault[];
  /** The reasons of failed attempts. */
  readonly reasons?: readonly string[];
}

export interface MadeUpFault {
  readonly fault: ChaosFault;
  readonly target: string;
  readonly detail?: string;
  /** In seconds. */
  readonly from: number;
  readonly to: number;
}

const REASONS = ["the disk is full", "the connection to the agent was lost", "cell-1-host-12 did not answer in time"];

/**
 * An invented history of a run, slow and with refusals while faults last, for tests that read histories. The same seed gives the same
 * history.
 */
export function madeUpHistory(run: MadeUpRun = {}): readonly HistoryLine[] {
  const { seed = 1, creates = 400, seconds = 60, faults = [], reasons = REASONS } = run;
  const random = seededRandom(seed);
  const lines: HistoryLine[] = [];
  const loadMs = seconds * 1_000 * 0.85;
  const isHurt = (atMs: number): boolean => faults.some(({ from, to }) => atMs >= from * 1_000 && atMs <= to * 1_000);
  for (let id = 1; id <= creates; id += 1) {
    const atMs = random() * loadMs;
    lines.push(...oneServer({ id, atMs, random, isHurt, reasons, loadMs, creates }));
  }
  faults.forEach(({ fault, target, detail, from, to }, index) => {
    const about = { who: "nemesis", fault, faultId: index + 1, target, ...(detail && { detail }) } as const;
    lines.push(
      { atMs: from * 1_000, what: "fault-begins", ...about },
      { atMs: to * 1_000, what: "fault-ends", ...about },
    );
  });
  lines.sort((a, b) => a.atMs - b.atMs);
  const endMs = Math.max(seconds * 1_000, lines.at(-1)?.atMs ?? 0);
  const parts = ["api", "scheduler/1", "scheduler/2", "conductor-cell-1/1", "conductor-cell-1/2", "agent-cell-1/1"];
  return [
    { atMs: 0, who: "runner", what: "start", plan: "made-up", target: "local", seed, parts },
    ...lines,
    { atMs: endMs, who: "runner", what: "settled", open: 0, ms: endMs - loadMs },
    ...([1, 2, 3, 4, 5] as const).map(
      (law): HistoryLine => ({ atMs: endMs + 50, who: "auditor", what: "verdict", law, holds: true, violations: [] }),
    ),
    { atMs: endMs + 60, who: "runner", what: "end", passed: true, failures: [] },
  ];
}

interface OneServer {
  readonly id: number;
  readonly atMs: number;
  readonly random: () => number;
  readonly isHurt: (atMs: number) => boolean;
  readonly reasons: readonly string[];
  readonly loadMs: number;
  readonly creates: number;
}

function oneServer({ id, atMs, random, isHurt, reasons, loadMs, creates }: OneServer): readonly HistoryLine[] {
  const who = `client-${1 + (id % 8)}`;
  const hurt = isHurt(atMs);
  const ms = Math.round(3 + random() * 6 + (hurt ? random() ** 4 * 2_500 : random() ** 12 * 60));
  const chance = random();
  const server = uuidOf(id);
  const invoke = { atMs, who, what: "invoke", op: "create", id } as const;
  if (hurt && chance < 0.12) {
    const isRefused = chance < 0.07;
    const why = isRefused ? { status: 503, reason: "the queue is full" } : { reason: "no answer within 5 s" };
    const answer = { atMs: atMs + ms, who, what: isRefused ? "refused" : "unknown", op: "create", id, ms } as const;
    return [invoke, { ...answer, ...why }];
  }
  const ok: Answered = { atMs: atMs + ms, who, what: "ok", op: "create", id, server, ms, status: 202 };
  const attempts = 1 + Number(random() < (hurt ? 0.5 : 0.05)) + Number(random() < (hurt ? 0.2 : 0.01));
  const builtMs = Math.round((700 + random() * 900) * attempts + (hurt ? random() ** 3 * 9_000 : 0));
  const failed = Array.from({ length: attempts - 1 }, () => reasons[Math.floor(random() ** 2 * reasons.length)]!);
  const isError = attempts === 3 && random() < 0.3;
  const end = { atMs: atMs + ms + builtMs, who, what: "state", server, ms: builtMs, attempts } as const;
  const lines: HistoryLine[] = [invoke, ok];
  if (isError) lines.push({ ...end, state: "ERROR", reasons: [...failed, "Exceeded maximum number of retries."] });
  else lines.push({ ...end, state: "ACTIVE", host: `cell-1-host-${1 + (id % 20)}`, reasons: failed });
  if (!isError && random() < 0.4) {
    const deleteMs = Math.max(end.atMs, Math.min(loadMs, end.atMs + random() * 20_000)) + 1;
    const asked = { who, op: "delete", id: creates + id, server } as const;
    const answerMs = Math.round(4 + random() * 8);
    lines.push({ ...asked, atMs: deleteMs, what: "invoke" });
    lines.push({ ...asked, atMs: deleteMs + answerMs, what: "ok", ms: answerMs, status: 204 });
    lines.push({ atMs: deleteMs + answerMs + 400, who, what: "state", server, state: "DELETED", ms: 400 });
  }
  return lines;
}

function uuidOf(id: number): string {
  return `${((id * 2_654_435_761) % 2 ** 32).toString(16).padStart(8, "0")}-0000-4000-8000-${id.toString(16).padStart(12, "0")}`;
}
