/**
 * Lets only a limited number of callers through in each turn of the event loop, in their order of arrival. Many callers that become ready
 * at once, as the items of one batch do, then do not delay everything else that waits to be received or answered.
 */
export class TurnGate {
  readonly #perTurn: number;
  readonly #waiting: (() => void)[] = [];
  #scheduled = false;

  constructor(perTurn: number) {
    this.#perTurn = perTurn;
  }

  /** Resolves in a later turn of the event loop, when it is the caller's turn. */
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
