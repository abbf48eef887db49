import type { Clock, Timer } from "../../runtime/clock.ts";

interface Due {
  readonly atMs: number;
  /** Breaks ties: what was set first runs first. */
  readonly order: number;
  run: (() => void) | null;
}

/** The time of a simulated world: it goes from one timer to the next, and costs nothing in between. */
export class VirtualClock implements Clock {
  /** Since the beginning: fractions of a millisecond would be lost in a time since the epoch. */
  #nowMs = 0;
  readonly #startMs: number;
  #order = 0;
  /** A binary heap by time and order. */
  readonly #heap: Due[] = [];

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  /** Whole milliseconds, as `Date.now`. */
  now(): number {
    return Math.floor(this.#startMs + this.#nowMs);
  }

  monotonic(): number {
    return this.#nowMs;
  }

  setTimer(delayMs: number, run: () => void): Timer {
    this.#order += 1;
    const due: Due = { atMs: this.#nowMs + Math.max(0, delayMs), order: this.#order, run };
    this.#push(due);
    return {
      cancel: () => {
        due.run = null;
      },
    };
  }

  /** Goes to the earliest timer and runs it; false if there is none until `untilMs`, and then it is `untilMs`. */
  step(untilMs: number): boolean {
    for (let first = this.#heap[0]; first !== undefined && first.atMs <= untilMs; first = this.#heap[0]) {
      this.#pop();
      if (first.run === null) continue;
      this.#nowMs = Math.max(this.#nowMs, first.atMs);
      first.run();
      return true;
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
    return false;
  }

  #push(due: Due): void {
    const heap = this.#heap;
    let at = heap.push(due) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(due, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = due;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1;
      if (!isBefore(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
  }
}

function isBefore(a: Due, b: Due): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}
