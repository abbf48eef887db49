/** How many steps a search may take: packing groups on providers is NP-hard in general, and no request may stall a scheduler. */
export class WorkBudget {
  #left: number;

  constructor(steps: number) {
    this.#left = steps;
  }

  get spent(): boolean {
    return this.#left <= 0;
  }

  /** Takes one step; false when there is none left. */
  step(): boolean {
    this.#left -= 1;
    return this.#left > 0;
  }
}
