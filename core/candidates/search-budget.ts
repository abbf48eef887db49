/** Most steps spent on one tree. */
export const WORK_PER_TREE = 20_000;

/** How much searching one decision may do over all trees that it looks at. */
export interface SearchLimits {
  /** Steps of the search; some 150 ns each. */
  readonly steps: number;
  readonly ms: number;
  /** After so many steps others have their turn of the event loop. */
  readonly stepsPerSlice: number;
}

export const DEFAULT_SEARCH_LIMITS: SearchLimits = { steps: 200_000, ms: 20, stepsPerSlice: 25_000 };

/** Why a search went no further. */
export type SearchLimit = "steps" | "time";

/** The clock is read once in so many steps: most decisions end before. */
const STEPS_PER_LOOK = 2_000;

/**
 * What one decision may spend on combining request groups, over all trees: packing is hard in general, and whoever asks chooses what is
 * packed. It is spent in slices, between which the decision gives way to others.
 *
 * - open: trees are searched
 * - at the end of a slice: no further tree is searched until `beginSlice`
 * - spent: no further tree is searched at all; `spentBy` says which limit it was
 */
export class SearchBudget {
  readonly limits: SearchLimits;
  readonly #nowMs: () => number;
  #stepsLeft: number;
  #stepsLeftOfSlice: number;
  #stepsUntilLook = STEPS_PER_LOOK;
  /** Spent in slices that have ended. */
  #spentMs = 0;
  /** When the clock was read first in this slice; null: not yet. */
  #sliceBeganMs: number | null = null;
  #spentBy: SearchLimit | null = null;

  /** `nowMs`: a clock that never goes back. */
  constructor(limits: SearchLimits, nowMs: () => number) {
    this.limits = limits;
    this.#nowMs = nowMs;
    this.#stepsLeft = limits.steps;
    this.#stepsLeftOfSlice = limits.stepsPerSlice;
  }

  get spentBy(): SearchLimit | null {
    return this.#spentBy;
  }

  /** No further tree is searched in this slice, or at all. */
  get isClosed(): boolean {
    return this.#stepsLeftOfSlice <= 0 || this.#spentBy !== null;
  }

  /** Steps that were spent so far. */
  get steps(): number {
    return this.limits.steps - this.#stepsLeft;
  }

  /** Most steps that the next tree may have. */
  get stepsForTree(): number {
    return Math.min(WORK_PER_TREE, this.#stepsLeft);
  }

  beginSlice(): void {
    this.endSlice();
    this.#stepsLeftOfSlice = this.limits.stepsPerSlice;
  }

  /** What passes until the next step does not count. */
  endSlice(): void {
    if (this.#sliceBeganMs === null) return;
    this.#spentMs += this.#nowMs() - this.#sliceBeganMs;
    this.#sliceBeganMs = null;
  }

  /** So many steps were spent on a tree. */
  spend(steps: number): void {
    this.#stepsLeft -= steps;
    this.#stepsLeftOfSlice -= steps;
    if (this.#stepsLeft <= 0) {
      this.#stepsLeft = 0;
      this.#spentBy = "steps";
      return;
    }
    this.#stepsUntilLook -= steps;
    if (this.#stepsUntilLook > 0) return;
    this.#stepsUntilLook = STEPS_PER_LOOK;
    const nowMs = this.#nowMs();
    this.#sliceBeganMs ??= nowMs;
    if (this.#spentMs + nowMs - this.#sliceBeganMs >= this.limits.ms) this.#spentBy = "time";
  }
}

/** One that the steps of a decision bound, in one slice and by no clock. */
export function stepsOnly(): SearchBudget {
  return new SearchBudget(STEPS_ONLY, noClock);
}

const STEPS_ONLY: SearchLimits = {
  ...DEFAULT_SEARCH_LIMITS,
  ms: Number.POSITIVE_INFINITY,
  stepsPerSlice: DEFAULT_SEARCH_LIMITS.steps,
};
const noClock = (): number => 0;

/** One that nothing bounds but the steps of each tree. */
export function boundlessSearch(): SearchBudget {
  const steps = Number.MAX_SAFE_INTEGER;
  return new SearchBudget({ steps, ms: Number.POSITIVE_INFINITY, stepsPerSlice: steps }, noClock);
}
