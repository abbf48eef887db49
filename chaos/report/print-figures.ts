import type { AllFaultsFigures } from "./fault-figures.ts";
import type { ChaosFigures } from "./figures.ts";
import { formatMoment, formatMs } from "./format.ts";
import type { Percentiles } from "./percentiles.ts";

const REASONS_MAX = 5;
const FAULTS_MAX = 6;

/** The figures of a run for a terminal: outcomes of servers and requests, figures around each fault, and the laws. */
export function figuresText(figures: ChaosFigures): string {
  const { run, servers, endMs, passed, failures, gap, createGap, settled, builds } = figures;
  const verdict = passed === null ? "broken off" : passed ? "passed" : "FAILED";
  const gapText = (one: ChaosFigures["gap"]): string =>
    one === null ? "–" : `${formatMs(one.toMs - one.fromMs)} (from ${formatMoment(one.fromMs)})`;
  const lines = [
    `${run?.plan ?? "a run without a beginning"}: ${verdict} after ${formatMs(endMs)}${run === null ? "" : `, seed ${run.seed}`}`,
    `creates: ${servers.accepted} accepted, ${servers.refused} refused, ${servers.unknown} without a clear answer`,
    `servers: ${servers.active} ACTIVE, ${servers.error} ERROR, ${servers.deleted} deleted, ${servers.stuck} stuck`,
    `create to ACTIVE: ${percentilesText(figures.creates)}`,
    `longest without an accepted create: ${gapText(createGap)}; without any success: ${gapText(gap)}`,
  ];
  if (settled !== null)
    lines.push(settled.what === "settled" ? `settled in ${formatMs(settled.ms)}` : `not settled: ${settled.open} open`);
  lines.push(...faultLines(figures));
  if (builds.retries.length > 0) {
    lines.push("builds tried again:");
    for (const { reason, count } of builds.retries.slice(0, REASONS_MAX)) lines.push(`  ${count} × ${reason}`);
  }
  lines.push(...lawLines(figures), ...failures.map((failure) => `failed: ${failure}`));
  return lines.join("\n");
}

function faultLines({ faults, allFaults }: ChaosFigures): readonly string[] {
  const each = faults.slice(0, FAULTS_MAX).flatMap(({ span, ...phases }) => {
    const { faultId, fault, target, fromMs, toMs } = span;
    return [`#${faultId} ${fault} ${target}, ${formatMoment(fromMs)} to ${formatMoment(toMs)}`, ...phaseLines(phases)];
  });
  const more = faults.length - FAULTS_MAX;
  if (more > 0) each.push(`and ${more} more faults`);
  if (allFaults === null || faults.length < 2) return each;
  return [`${faults.length} faults: before the first, during any, after the last`, ...phaseLines(allFaults), ...each];
}

function phaseLines({ before, during, after }: AllFaultsFigures): readonly string[] {
  return Object.entries({ before, during, after }).flatMap(([name, phase]) => {
    if (phase === null || (phase.creates === null && phase.answers === null)) return [];
    const [creates, answers] = [percentilesText(phase.creates), percentilesText(phase.answers)];
    return [`  ${name.padEnd(6)}  create to ACTIVE: ${creates}; API answers: ${answers}`];
  });
}

function lawLines({ verdicts }: ChaosFigures): readonly string[] {
  if (verdicts.length === 0) return ["laws: not looked at"];
  const broken = verdicts.filter(({ holds }) => !holds);
  if (broken.length === 0) return [`laws: ${verdicts.map(({ law }) => law).join(", ")} hold`];
  return broken.flatMap(({ law, violations }) => [`law ${law} is broken:`, ...violations.map((text) => `  ${text}`)]);
}

function percentilesText(figures: Percentiles | null): string {
  if (figures === null) return "none";
  const { count, p50, p90, p99, max } = figures;
  return `n ${count}, p50 ${formatMs(p50)}, p90 ${formatMs(p90)}, p99 ${formatMs(p99)}, max ${formatMs(max)}`;
}
