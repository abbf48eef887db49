import { setTimeout as delay } from "node:timers/promises";
import { type CollectedSpan, startTraceCollector } from "../../test/e2e/trace-collector.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { measuredOf } from "../measure.ts";
import { LONE_BOOTS, measureLoneBoots } from "./lone-boots.ts";
import { MeasuredCloud } from "./measured-cloud.ts";
import type { StatementCount } from "./statement-counts.ts";

const PATIENT = { everyMs: 200, withinMs: 30_000 };
const POST = /^POST .*\/servers$/;
const DOT_MS = 0.5;
const DOTS_MAX = 60;
const WARM_UP = 1_500;
/** Longer than batches are spaced after the last company. */
const PAUSE_MS = 2_000;
/** Statements that come less often are no part of each boot. */
const STATEMENTS_MIN = 0.4;
/** The statement by which `measureLoneBoots` looks at a server. */
const OWN_STATEMENT = "select from servers where uuid =";

/** One kind of span of a boot, with the medians of its start after the POST and of its length. */
interface TimedStep {
  readonly name: string;
  readonly startMs: number;
  readonly lengthMs: number;
}

/**
 * Prints where the time of a lone boot goes: the spans of its trace and their events with their places after the POST, in medians over the
 * boots, and the statements of a boot and its delete, each of which is a round trip. Many boots come first, after which the code is compiled and plans are
 * kept, and a pause, after which no batch waits for others.
 */
export async function printTimeLine(): Promise<void> {
  const collector = await startTraceCollector();
  try {
    const cloud = await MeasuredCloud.start(undefined, { BERTH_OTLP_ENDPOINT: collector.url });
    let sinceMs = Date.now();
    const spans = () => collector.spans.filter(({ startMs }) => startMs >= sinceMs);
    try {
      await cloud.bootAndDelete(WARM_UP);
      await delay(PAUSE_MS);
      sinceMs = Date.now();
      printStatements(await cloud.countStatements(async () => void (await measureLoneBoots(cloud))));
      const isComplete = () => stepsOf(spans()).length > 0 && bootsOf(spans()).length >= LONE_BOOTS;
      await eventually("the spans of all boots", async () => isComplete(), PATIENT);
    } finally {
      await cloud.close();
    }
    printSteps(stepsOf(spans()));
  } finally {
    collector.close();
  }
}

function printSteps(steps: readonly TimedStep[]): void {
  process.stdout.write(`  ${"a lone boot, milliseconds after its POST".padEnd(44)}  start  length\n`);
  for (const { name, startMs, lengthMs } of steps) {
    const before = " ".repeat(Math.min(DOTS_MAX, Math.max(0, Math.round(startMs / DOT_MS))));
    const bar = "█".repeat(Math.min(DOTS_MAX, Math.max(1, Math.round(lengthMs / DOT_MS))));
    process.stdout.write(
      `  ${name.padEnd(44)} ${startMs.toFixed(2).padStart(6)} ${lengthMs.toFixed(2).padStart(7)}  ${before}${bar}\n`,
    );
  }
}

function printStatements(counts: ReadonlyMap<string, readonly StatementCount[]>): void {
  process.stdout.write("  statements of a lone boot and its delete\n");
  for (const [server, statements] of counts)
    for (const { text, calls, ms } of statements) {
      const perBoot = calls / LONE_BOOTS;
      if (perBoot < STATEMENTS_MIN || text.startsWith(OWN_STATEMENT)) continue;
      process.stdout.write(
        `    ${server}: ${perBoot.toFixed(1)} × ${(ms / calls).toFixed(2)} ms  ${text.slice(0, 90)}\n`,
      );
    }
}

function bootsOf(spans: readonly CollectedSpan[]): readonly CollectedSpan[] {
  return spans.filter(({ name }) => POST.test(name));
}

function stepsOf(spans: readonly CollectedSpan[]): readonly TimedStep[] {
  const posted = new Map(bootsOf(spans).map(({ traceId, startMs }) => [traceId, startMs]));
  const seen = new Map<string, { starts: number[]; lengths: number[] }>();
  const note = (step: string, startMs: number, lengthMs: number): void => {
    const times = seen.get(step) ?? { starts: [], lengths: [] };
    seen.set(step, times);
    times.starts.push(startMs);
    times.lengths.push(lengthMs);
  };
  for (const { service, name, traceId, startMs, endMs, events } of spans) {
    const since = posted.get(traceId);
    if (since === undefined) continue;
    const step = `${service.replace("berth-", "")}: ${name}`;
    note(step, startMs - since, endMs - startMs);
    for (const event of events) note(`${step}: ${event.name}`, event.atMs - since, 0);
  }
  const medianOf = (figures: readonly number[]) => measuredOf(figures).median;
  return [...seen]
    .map(([name, { starts, lengths }]) => ({ name, startMs: medianOf(starts), lengthMs: medianOf(lengths) }))
    .sort((a, b) => a.startMs - b.startMs);
}
