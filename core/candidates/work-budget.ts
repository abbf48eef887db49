/** How many steps a search may take: packing groups on providers is NP-hard in general, and no request may stall a scheduler. */
export class WorkBudget {
  #left = 0;
  #given = 0;

  /** Steps taken since it was renewed. */
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

  /** Takes one step; false when there is none left. */
  step(): boolean {
    this.#left -= 1;
    return this.#left > 0;
  }
}
