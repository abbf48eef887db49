import type { PartName } from "./parts.ts";

/** What a test counts that tries many things: requests, commands, tests of another suite. */
export interface Figures {
  readonly passed: number;
  readonly failed: number;
  readonly skipped?: number;
  /** What else the reader of the figures must know, such as the reasons of what was skipped, one a line. */
  readonly notes?: readonly string[];
}

declare module "vitest" {
  interface TaskMeta {
    /** The part of `npm run test:openstack` to which a test belongs. Tests of a file with one part alone need none. */
    part?: PartName;
    /** Counted in place of the test itself. */
    figures?: Figures;
  }
}

/** Returns each reason with how often it occurs, the most frequent one first. */
export function countReasons(reasons: readonly string[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts].toSorted(([, one], [, other]) => other - one).map(([reason, count]) => `${count} × ${reason}`);
}
