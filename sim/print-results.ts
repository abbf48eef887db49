import { nameOfPromise } from "../core/audit/violation.ts";
import { shrink } from "./shrink.ts";
import type { SimOptions, SimResult } from "./simulate.ts";

/** The results of a call of `berth sim` so far. */
export interface SimTotal {
  seeds: number;
  failed: number;
  simulatedMs: number;
  accepted: number;
  stranded: number;
  readonly startedMs: number;
  readonly startedCpu: NodeJS.CpuUsage;
}

/** Prints a result as one JSON object. */
export function printJson({ seed, findings, simulatedMs, steps, counts, digest }: SimResult): void {
  process.stdout.write(`${JSON.stringify({ seed, findings, simulatedMs, steps, ...counts, digest })}\n`);
}

/** Prints the result of a single seed. */
export function printOne({ seed, simulatedMs, steps, counts, digest }: SimResult): void {
  const { accepted, active, error, deleted, stranded, changes } = counts;
  process.stdout.write(
    `seed ${seed}: ${secondsOf(simulatedMs)} in ${steps} steps; ${accepted} accepted: ${active} active, ${error} in error, ` +
      `${deleted} deleted, ${stranded} moves stranded\nchanges: ${JSON.stringify(changes)}\nhistory ${digest}\n`,
  );
}

/** Prints the sums over all seeds of a call. */
export function printTotal(total: SimTotal, profile: string): void {
  const tookMs = performance.now() - total.startedMs;
  const { user, system } = process.cpuUsage(total.startedCpu);
  const held = total.failed === 0 ? "all laws held" : `${total.failed} failed`;
  process.stdout.write(
    `${total.seeds} seeds of profile ${profile}: ${held}. ${total.accepted} requests, ${total.stranded} moves stranded, ${secondsOf(total.simulatedMs)} simulated in ` +
      `${secondsOf(tookMs)}, ${Math.round((total.simulatedMs * 1_000) / (user + system))} for each second of CPU.\n`,
  );
}

/** Prints what is wrong, the shortest prefix that shows it, what happened around it, and how to see it again. */
export async function printFailure(options: SimOptions, failed: SimResult, argv: readonly string[]): Promise<void> {
  const write = (line: string) => process.stderr.write(`${line}\n`);
  write(`seed ${options.seed} fails:`);
  for (const { law, what, atMs } of failed.findings) write(`  ${nameOfPromise(law)} at ${secondsOf(atMs)}: ${what}`);
  const { busyMs, result } = await shrink(options, failed);
  write(`the shortest prefix that fails: users and faults for ${secondsOf(busyMs)}. What happened last:`);
  for (const line of result.history.slice(-40)) write(`  ${line.trimEnd()}`);
  write(`to see it again: ${replayCommand(options.seed, argv)}`);
}

/** The command that shows a failed world again. `argv` are the arguments of the call that found it, which may have been for many seeds. */
export function replayCommand(seed: number, argv: readonly string[]): string {
  const own = argv.filter(
    (word, at) => !/^--(seeds?|history|(no-)?soak)(=|$)/.test(word) && !/^--(seeds?|history)$/.test(argv[at - 1] ?? ""),
  );
  return ["berth sim", `--seed ${seed}`, ...own, "--history history.jsonl"].join(" ");
}

/** Prints one line for a world in which no law was broken. A call of `berth sim --seed` with the profile shows the world again. */
export function printHeld({ seed, simulatedMs, counts }: SimResult, { profile, hosts, cells }: SimOptions): void {
  const where = `${profile.name}, ${hosts} hosts in ${cells} ${cells === 1 ? "cell" : "cells"}`;
  process.stdout.write(`seed ${seed} (${where}): ${secondsOf(simulatedMs)}, ${counts.accepted} servers: held\n`);
}

/** Formats milliseconds as seconds with one decimal. */
export function secondsOf(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
