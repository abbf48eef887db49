/** Maximum number of search steps for one tree. */
export const WORK_PER_TREE = 20_000;

/** How much search work one decision may do over all its trees. */
export interface SearchLimits {
  /** Search steps of about 150 ns each. */
  readonly steps: number;
  readonly ms: number;
  /** Number of steps after which the search yields to other work of the event loop. */
  readonly stepsPerSlice: number;
}

export const DEFAULT_SEARCH_LIMITS: SearchLimits = { steps: 200_000, ms: 20, stepsPerSlice: 25_000 };

/** Which limit ended the search. */
export type SearchLimit = "steps" | "time";

/** Steps between two readings of the clock. Most decisions end before the first one. */
const STEPS_PER_LOOK = 2_000;

/**
 * The steps and time that one decision may spend on combining request groups, over all trees. Packing is hard in general, and the client
 * chooses what is packed. The budget is spent in slices, and between two slices other decisions get their turn.
 *
 * - open: trees are searched
 * - at the end of a slice: no further tree is searched until `beginSlice`
 * - spent: no further tree is searched at all, and `spentBy` says which limit it was
 */
export class SearchBudget {
  readonly limits: SearchLimits;
  readonly #nowMs: () => number;
  #stepsLeft: number;
  #stepsLeftOfSlice: number;
  #stepsUntilLook = STEPS_PER_LOOK;
  /** Milliseconds spent in slices that have ended. */
  #spentMs = 0;
  /** When the clock was first read in this slice, or null before that. */
  #sliceBeganMs: number | null = null;
  #spentBy: SearchLimit | null = null;

  /** `nowMs` must be a clock that never goes back. */
  constructor(limits: SearchLimits, nowMs: () => number) {
    this.limits = limits;
    this.#nowMs = nowMs;
    this.#stepsLeft = limits.steps;
    this.#stepsLeftOfSlice = limits.stepsPerSlice;
  }

  get spentBy(): SearchLimit | null {
    return this.#spentBy;
  }

  /** True when no further tree may be searched in this slice, or at all. */
  get isClosed(): boolean {
    return this.#stepsLeftOfSlice <= 0 || this.#spentBy !== null;
  }

  /** Steps spent so far. */
  get steps(): number {
    return this.limits.steps - this.#stepsLeft;
  }

  /** Maximum number of steps for the next tree. */
  get stepsForTree(): number {
    return Math.min(WORK_PER_TREE, this.#stepsLeft);
  }

  beginSlice(): void {
    this.endSlice();
    this.#stepsLeftOfSlice = this.limits.stepsPerSlice;
  }

  /** Ends the slice. Time until the first step of the next slice does not count. */
  endSlice(): void {
    if (this.#sliceBeganMs === null) return;
    this.#spentMs += this.#nowMs() - this.#sliceBeganMs;
    this.#sliceBeganMs = null;
  }

  /** Charges the steps that a tree has taken. */
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

/** A budget with a decision's limit of steps, one slice and no clock. */
export function stepsOnly(): SearchBudget {
  return new SearchBudget(STEPS_ONLY, noClock);
}

const STEPS_ONLY: SearchLimits = {
  ...DEFAULT_SEARCH_LIMITS,
  ms: Number.POSITIVE_INFINITY,
  stepsPerSlice: DEFAULT_SEARCH_LIMITS.steps,
};
const noClock = (): number => 0;

/** A budget that bounds only the steps of each tree. */
export function boundlessSearch(): SearchBudget {
  const steps = Number.MAX_SAFE_INTEGER;
  return new SearchBudget({ steps, ms: Number.POSITIVE_INFINITY, stepsPerSlice: steps }, noClock);
}
