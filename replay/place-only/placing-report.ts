import type { PackingPolicyName } from "../../core/scheduling/packing/packing-policies.ts";
import { round2 } from "./allocation-points.ts";
import type { PublishedRun } from "./published-allocation.ts";
import type { Run } from "./run-experiment.ts";

export interface PolicyReport {
  readonly policy: PackingPolicyName;
  readonly runs: readonly Run[];
  /** Means over the seeds, by percentage of arrivals. */
  readonly allocated: readonly (number | null)[];
  /** Published means over the same seeds, or null when not all of these seeds are published. */
  readonly published: readonly (number | null)[] | null;
}

export function policyReportOf(
  policy: PackingPolicyName,
  runs: readonly Run[],
  all: readonly PublishedRun[],
): PolicyReport {
  const seeds = new Set(runs.map(({ seed }) => seed));
  const published = all.filter((run) => run.policy === policy && seeds.has(run.seed));
  const points = Math.max(0, ...runs.map(({ allocated }) => allocated.length));
  return {
    policy,
    runs,
    allocated: meansOf(runs, points),
    published: published.length === seeds.size ? meansOf(published, points) : null,
  };
}

function meansOf(
  runs: readonly { readonly allocated: readonly (number | null)[] }[],
  points: number,
): (number | null)[] {
  return Array.from({ length: points }, (_, at) => {
    const values = runs.map(({ allocated }) => allocated[at] ?? null).filter((value) => value !== null);
    return values.length === 0 ? null : round2(values.reduce((sum, value) => sum + value, 0) / values.length);
  });
}

/** A table with one line for each percentage of arrivals. It shows, for each policy, the share that was allocated and the published share. */
export function pointsTable(reports: readonly PolicyReport[]): string {
  const head = ["arrived %", ...reports.flatMap(({ policy }) => [policy, "published"])];
  const points = reports[0]?.allocated.length ?? 0;
  const rows = Array.from({ length: points }, (_, at) => [
    String(at),
    ...reports.flatMap(({ allocated, published }) => [percent(allocated[at]), percent(published?.[at])]),
  ]);
  return textTable([head, ...rows]);
}

/** One line for each policy: the allocation at the last point, the published one, and that of every seed. */
export function summaryTable(reports: readonly PolicyReport[]): string {
  const last = (reports[0]?.allocated.length ?? 0) - 1;
  const seeds = reports[0]?.runs.map(({ seed }) => String(seed)) ?? [];
  const head = [`at ${last} %`, "mean", "published", ...seeds];
  const rows = reports.map(({ policy, allocated, published, runs }) => [
    policy,
    percent(allocated[last]),
    percent(published?.[last]),
    ...runs.map((run) => percent(run.allocated[last])),
  ]);
  return textTable([head, ...rows]);
}

function percent(value: number | null | undefined): string {
  return value === null || value === undefined ? "-" : value.toFixed(2);
}

function textTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const line = (row: readonly string[]): string =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join("  ");
  return rows.map(line).join("\n");
}
