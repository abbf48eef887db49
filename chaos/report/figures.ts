import type { ChaosTarget, ClientOperation, HistoryLine, SettledRound, Verdict } from "../history-line.ts";
import { type ClientCall, clientCalls } from "./client-calls.ts";
import { type AllFaultsFigures, allFaultsFigures, type FaultFigures, faultFigures } from "./fault-figures.ts";
import { endOf, faultSpans } from "./fault-spans.ts";
import { type Percentiles, percentilesOf } from "./percentiles.ts";
import { type BuildFigures, buildFigures, countReasons, type ReasonCount } from "./retries.ts";
import { isStuck, type ServerLife, serverLives } from "./server-lives.ts";
import { longestGap, type ServiceGap } from "./service-gap.ts";

/** The figures of the requests of one kind. */
export interface OperationFigures {
  readonly op: ClientOperation;
  readonly ok: number;
  readonly refused: number;
  /** Number of requests without an answer that says whether they were carried out. */
  readonly unknown: number;
  /** Times of the requests that were answered. */
  readonly answers: Percentiles | null;
}

/** Numbers of servers by outcome. */
export interface ServerCounts {
  /** Creates that were accepted. */
  readonly accepted: number;
  readonly active: number;
  readonly error: number;
  /** Deleted before they were seen ACTIVE or ERROR. */
  readonly deletedEarly: number;
  readonly deleted: number;
  /** Servers that were accepted and are neither ACTIVE nor ERROR nor deleted, or that were deleted and are still there. */
  readonly stuck: number;
  /** Creates whose outcome is unknown. */
  readonly unknown: number;
  /** Creates that were refused. */
  readonly refused: number;
}

/** All figures of a report. Times are in milliseconds since the run began. */
export interface ChaosFigures {
  readonly run: {
    readonly plan: string;
    readonly target: ChaosTarget;
    readonly seed: number;
    readonly parts: readonly string[];
  } | null;
  readonly endMs: number;
  /** Null when the run was broken off. */
  readonly passed: boolean | null;
  readonly failures: readonly string[];
  readonly servers: ServerCounts;
  readonly operations: readonly OperationFigures[];
  /** Times from the acceptance of a create to ACTIVE. */
  readonly creates: Percentiles | null;
  readonly faults: readonly FaultFigures[];
  /** Null when there was no fault. */
  readonly allFaults: AllFaultsFigures | null;
  readonly builds: BuildFigures;
  readonly refusals: readonly ReasonCount[];
  readonly unknowns: readonly ReasonCount[];
  /** The longest time without any success; null when no request was made. */
  readonly gap: ServiceGap | null;
  /** The longest time without a successful create. */
  readonly createGap: ServiceGap | null;
  readonly settled: SettledRound | null;
  readonly verdicts: readonly Verdict[];
  /** The servers that took longest to become ACTIVE. */
  readonly slowest: readonly ServerLife[];
}

const OPERATIONS: readonly ClientOperation[] = ["create", "delete", "action", "show", "list"];
const SLOWEST_MAX = 10;

/** The figures of a run from its history. Pure: the same history gives the same figures. */
export function figuresOf(history: readonly HistoryLine[]): ChaosFigures {
  const calls = clientCalls(history);
  const lives = serverLives(history, calls);
  const endMs = endOf(history);
  const start = history.find((line) => line.what === "start");
  const end = history.findLast((line) => line.what === "end");
  const reasonsOf = (answer: ClientCall["answer"]): readonly ReasonCount[] =>
    countReasons(calls.filter((call) => call.answer === answer).map(reasonOf));
  const spans = faultSpans(history);
  const things = { calls, lives, endMs: loadEnd(calls, lives) };
  const active = lives.filter(({ end: seen }) => seen?.state === "ACTIVE");
  return {
    run: start ? { plan: start.plan, target: start.target, seed: start.seed, parts: start.parts } : null,
    endMs,
    passed: end?.passed ?? null,
    failures: end?.failures ?? [],
    servers: serverCounts(lives, calls),
    operations: OPERATIONS.flatMap((op) => operationFigures(op, calls)),
    creates: percentilesOf(active.map(({ end: seen }) => seen!.ms)),
    faults: faultFigures(spans, things),
    allFaults: allFaultsFigures(spans, things),
    builds: buildFigures(lives),
    refusals: reasonsOf("refused"),
    unknowns: reasonsOf("unknown"),
    gap: longestGap(calls),
    createGap: longestGap(calls, ["create"]),
    settled: history.findLast(isSettled) ?? null,
    verdicts: history.filter((line) => line.what === "verdict").sort((a, b) => a.law - b.law),
    slowest: active.sort((a, b) => b.end!.ms - a.end!.ms).slice(0, SLOWEST_MAX),
  };
}

function serverCounts(lives: readonly ServerLife[], calls: readonly ClientCall[]): ServerCounts {
  const creates = calls.filter(({ op }) => op === "create");
  return {
    accepted: creates.filter(({ answer }) => answer === "ok").length,
    active: lives.filter(({ end }) => end?.state === "ACTIVE").length,
    error: lives.filter(({ end }) => end?.state === "ERROR").length,
    deletedEarly: lives.filter(({ end, deleted }) => end === null && deleted !== null).length,
    deleted: lives.filter(({ deleted }) => deleted !== null).length,
    stuck: lives.filter(isStuck).length,
    unknown: creates.filter(({ answer }) => answer === "unknown" || answer === null).length,
    refused: creates.filter(({ answer }) => answer === "refused").length,
  };
}

function operationFigures(op: ClientOperation, calls: readonly ClientCall[]): readonly OperationFigures[] {
  const ofKind = calls.filter((call) => call.op === op);
  if (ofKind.length === 0) return [];
  const count = (answer: ClientCall["answer"]): number => ofKind.filter((call) => call.answer === answer).length;
  const answered = ofKind.filter(({ answer }) => answer === "ok" || answer === "refused");
  const answers = percentilesOf(answered.map(({ fromMs, toMs }) => toMs! - fromMs));
  return [{ op, ok: count("ok"), refused: count("refused"), unknown: count("unknown") + count(null), answers }];
}

/** When the last request was answered or the last server ended. Later events are not caused by the load. */
function loadEnd(calls: readonly ClientCall[], lives: readonly ServerLife[]): number {
  const answered = calls.reduce((last, { fromMs, toMs }) => Math.max(last, toMs ?? fromMs), 0);
  return lives.reduce((last, { states }) => Math.max(last, states.at(-1)?.atMs ?? 0), answered);
}

function reasonOf({ reason, status, op }: ClientCall): string {
  const said = reason ?? (status === null ? "no answer" : `HTTP ${status}`);
  return `${op}: ${said}`;
}

function isSettled(line: HistoryLine): line is SettledRound {
  return line.what === "settled" || line.what === "not-settled";
}
