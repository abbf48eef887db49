import { type FoundViolation, keyOfViolation, type Violation } from "./violation.ts";

/** The changes that a reading caused. */
export interface TrackedChanges {
  readonly confirmed: readonly FoundViolation[];
  readonly gone: readonly FoundViolation[];
}

interface Seen {
  found: FoundViolation;
  readonly firstMs: number;
  confirmed: boolean;
}

/**
 * Distinguishes violations from work in flight. A violation is **suspected** when a reading first shows it. It is **confirmed** when every
 * reading until at least `pauseMs` later has shown it, too. It is forgotten with the first complete reading that does not show it, because
 * work in flight (a guest about to be ordered, a request in transit) is over by then.
 */
export class ViolationTracker {
  readonly #pauseMs: number;
  readonly #seen = new Map<string, Seen>();

  constructor(pauseMs: number) {
    this.#pauseMs = pauseMs;
  }

  /** Whether any suspected violation waits for a further reading. */
  get suspects(): boolean {
    return [...this.#seen.values()].some((one) => !one.confirmed);
  }

  /** The confirmed violations that are not gone, with the proof of the latest reading. */
  get standing(): readonly FoundViolation[] {
    return [...this.#seen.values()].filter((one) => one.confirmed).map((one) => one.found);
  }

  /** Takes a reading. With `isComplete` false, something could not be read, so violations that it does not show are kept. */
  observe(
    violations: readonly Violation[],
    reading: { readonly atMs: number; readonly at: string; readonly isComplete: boolean },
  ): TrackedChanges {
    const confirmed: FoundViolation[] = [];
    const gone: FoundViolation[] = [];
    const shown = new Set<string>();
    for (const violation of violations) {
      const key = keyOfViolation(violation);
      if (shown.has(key)) continue;
      shown.add(key);
      const before = this.#seen.get(key);
      if (before === undefined) {
        const found = { ...violation, since: reading.at };
        this.#seen.set(key, { found, firstMs: reading.atMs, confirmed: false });
        continue;
      }
      before.found = { ...violation, since: before.found.since };
      if (before.confirmed || reading.atMs - before.firstMs < this.#pauseMs) continue;
      before.confirmed = true;
      confirmed.push(before.found);
    }
    if (!reading.isComplete) return { confirmed, gone };
    for (const [key, one] of this.#seen) {
      if (shown.has(key)) continue;
      this.#seen.delete(key);
      if (one.confirmed) gone.push(one.found);
    }
    return { confirmed, gone };
  }
}
