import type { KeptMiss } from "./decision.ts";

const MISSES_MAX = 3;

/** A line for operators with the hosts that nearly fitted and what each lacked, or "" when none is known. */
export function describeMisses(misses: readonly KeptMiss[]): string {
  if (misses.length === 0) return "";
  const shown = misses.slice(0, MISSES_MAX).map(({ cell, host, why, lacks }) => {
    const lacking = lacks.map(({ class: name, requested, free }) => `${name}: ${requested} asked for, ${free} free`);
    return `${host} of ${cell} (${lacking.length > 0 ? lacking.join(", ") : why})`;
  });
  return `Nearest: ${shown.join("; ")}.`;
}
