import type { Clock, Timer } from "../runtime/clock.ts";

/** What a timer belongs to. Its timers never fire once it is dead, and wait while it is paused. */
export interface TimerOwner {
  readonly alive: boolean;
  /** How long it remains paused, in milliseconds. */
  readonly pausedMs: number;
}

/** A timer that was set, and its place in the order of all timers. */
class Due implements Timer {
  atMs: number;
  /** Breaks ties: the timer that was set first runs first. */
  order: number;
  run: (() => void) | null;
  readonly owner: TimerOwner | null;

  constructor(atMs: number, order: number, run: () => void, owner: TimerOwner | null) {
    this.atMs = atMs;
    this.order = order;
    this.run = run;
    this.owner = owner;
  }

  cancel(): void {
    this.run = null;
  }
}

/** The time of a simulated world, which jumps from one timer to the next. */
export class VirtualClock implements Clock {
  /** Milliseconds since the world's beginning. A time since the epoch would lose fractions of a millisecond. */
  #nowMs = 0;
  readonly #startMs: number;
  #order = 0;
  /** A binary heap by time and order. */
  readonly #heap: Due[] = [];

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  /** Whole milliseconds, like `Date.now`. */
  now(): number {
    return Math.floor(this.#startMs + this.#nowMs);
  }

  monotonic(): number {
    return this.#nowMs;
  }

  setTimer(delayMs: number, run: () => void, owner: TimerOwner | null = null): Timer {
    this.#order += 1;
    const due = new Due(this.#nowMs + Math.max(0, delayMs), this.#order, run, owner);
    this.#push(due);
    return due;
  }

  /** Advances to the earliest timer and runs it. When there is none before `untilMs`, advances to `untilMs` and returns false. */
  step(untilMs: number): boolean {
    for (let first = this.#heap[0]; first !== undefined && first.atMs <= untilMs; first = this.#heap[0]) {
      this.#pop();
      const { run, owner } = first;
      if (run === null) continue;
      this.#nowMs = Math.max(this.#nowMs, first.atMs);
      if (owner === null) run();
      else if (owner.alive) this.#runOf(owner, first, run);
      return true;
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
    return false;
  }

  #runOf(owner: TimerOwner, due: Due, run: () => void): void {
    const waitMs = owner.pausedMs;
    if (waitMs === 0) {
      run();
      return;
    }
    this.#order += 1;
    due.atMs = this.#nowMs + waitMs;
    due.order = this.#order;
    this.#push(due);
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
