/** Resources that are opened together: when one cannot be opened, none may stay open. */
export class Openings {
  readonly #all: Promise<(() => Promise<unknown>) | null>[] = [];

  /** Returns the promise, and remembers how to close its result. */
  add<Opened>(opening: Promise<Opened>, close: (opened: Opened) => Promise<unknown>): Promise<Opened> {
    this.#all.push(
      opening.then(
        (opened) => () => close(opened),
        () => null,
      ),
    );
    return opening;
  }

  /** Waits for all openings that were begun, and closes those that succeeded. Never rejects. */
  async undo(): Promise<void> {
    await Promise.allSettled(this.#all.map(async (opening) => (await opening)?.()));
  }
}
