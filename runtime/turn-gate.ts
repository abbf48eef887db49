/**
 * Lets only so many callers go on in each turn of the event loop, in the order in which they came: many that became ready at once, as the
 * items of one batch do, do not keep out whatever else waits to be received or answered.
 */
export class TurnGate {
  readonly #perTurn: number;
  readonly #waiting: (() => void)[] = [];
  #scheduled = false;

  constructor(perTurn: number) {
    this.#perTurn = perTurn;
  }

  /** Resolves in a later turn of the event loop, when it is the caller's. */
  pass(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#scheduled || this.#waiting.length === 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      for (const goOn of this.#waiting.splice(0, this.#perTurn)) goOn();
      this.#schedule();
    });
  }
}
