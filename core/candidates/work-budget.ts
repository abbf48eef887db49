/** The number of steps that a search may take. Packing groups on providers is NP-hard in general, and no request may stall a scheduler. */
export class WorkBudget {
  #left = 0;
  #given = 0;

  /** Steps taken since the budget was renewed. */
  get taken(): number {
    return this.#given - Math.max(0, this.#left);
  }

  get spent(): boolean {
    return this.#left <= 0;
  }

  renew(steps: number): void {
    this.#left = steps;
    this.#given = steps;
  }

  /** Takes one step, and returns false when none is left. */
  step(): boolean {
    this.#left -= 1;
    return this.#left > 0;
  }
}
