import type { Violation } from "../core/audit/violation.ts";
import type { Tally } from "./tally.ts";

/** The JSON that `--json` writes. */
export interface ReplayResult {
  readonly placed: number;
  readonly placed_on_alternate: number;
  readonly no_valid_host: number;
  readonly errors: number;
  readonly boots_per_second: number;
  readonly post_to_active_ms: { readonly p50: number; readonly p99: number };
  readonly claims_per_second: number;
  /** Percentage of the capacity of all machines at the peak of allocation. */
  readonly cpu_allocated_percent: number;
  readonly gpu_allocated_percent: number;
  /** Null when the databases are not known, so that nothing was audited. */
  readonly violations: readonly Violation[] | null;
}

export function resultOf(tally: Tally, claims: number, violations: readonly Violation[] | null): ReplayResult {
  const seconds = tally.firstPostMs === null ? 0 : Math.max(0, tally.lastEndMs - tally.firstPostMs) / 1000;
  const sorted = tally.latenciesMs.toSorted((a, b) => a - b);
  return {
    placed: tally.placed,
    placed_on_alternate: tally.placedOnAlternate,
    no_valid_host: tally.noValidHost,
    errors: tally.errors,
    boots_per_second: round(seconds === 0 ? 0 : tally.placed / seconds, 1),
    post_to_active_ms: { p50: round(percentile(sorted, 0.5), 2), p99: round(percentile(sorted, 0.99), 2) },
    claims_per_second: round(seconds === 0 ? 0 : claims / seconds, 1),
    cpu_allocated_percent: round(tally.allocatedAtPeak.cpu, 2),
    gpu_allocated_percent: round(tally.allocatedAtPeak.gpu, 2),
    violations,
  };
}

/** Percentile by the nearest rank; 0 when there are no values. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
}

/** The table at the end of a replay. */
export function resultTable(result: ReplayResult, tally: Tally): string {
  const end = tally.allocatedNow;
  const rows: (readonly [string, string])[] = [
    ["placed", whole(result.placed)],
    ["placed on an alternate", whole(result.placed_on_alternate)],
    ["no valid host", whole(result.no_valid_host)],
    ...reasonRows(tally.refusals),
    ["errors", whole(result.errors)],
    ...reasonRows(tally.errorReasons),
    ["boots per second", fixed(result.boots_per_second, 1)],
    ["POST to ACTIVE, p50", `${fixed(result.post_to_active_ms.p50, 1)} ms`],
    ["POST to ACTIVE, p99", `${fixed(result.post_to_active_ms.p99, 1)} ms`],
    ["claims per second", fixed(result.claims_per_second, 1)],
    ["CPU allocated, peak / end", `${fixed(result.cpu_allocated_percent, 2)} / ${fixed(end.cpu, 2)} %`],
    ["GPU allocated, peak / end", `${fixed(result.gpu_allocated_percent, 2)} / ${fixed(end.gpu, 2)} %`],
    ["violations of the six laws", result.violations === null ? "not audited" : whole(result.violations.length)],
  ];
  const label = Math.max(...rows.map(([name]) => name.length));
  const value = Math.max(...rows.map(([, text]) => text.length));
  return rows.map(([name, text]) => `  ${name.padEnd(label)}  ${text.padStart(value)}`).join("\n");
}

const REASONS_MAX = 10;

function reasonRows(reasons: ReadonlyMap<string, number>): [string, string][] {
  const sorted = [...reasons].sort(([, a], [, b]) => b - a);
  const rows = sorted
    .slice(0, REASONS_MAX)
    .map(([reason, times]): [string, string] => [`  ${clip(reason)}`, whole(times)]);
  const rest = sorted.slice(REASONS_MAX).reduce((sum, [, times]) => sum + times, 0);
  return rest === 0 ? rows : [...rows, ["  other reasons", whole(rest)]];
}

const clip = (text: string): string => (text.length <= 90 ? text : `${text.slice(0, 89)}…`);
const whole = (value: number): string => value.toLocaleString("en");
const fixed = (value: number, digits: number): string =>
  value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
const round = (value: number, digits: number): number => Number(value.toFixed(digits));
