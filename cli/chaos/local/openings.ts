/** Things that are being opened together: when one cannot be, none is to stay. */
export class Openings {
  readonly #all: Promise<(() => Promise<unknown>) | null>[] = [];

  /** Passes it on, and remembers how it is closed. */
  add<Opened>(opening: Promise<Opened>, close: (opened: Opened) => Promise<unknown>): Promise<Opened> {
    this.#all.push(
      opening.then(
        (opened) => () => close(opened),
        () => null,
      ),
    );
    return opening;
  }

  /** Waits for all that was begun, and closes what has come of it. Never rejects. */
  async undo(): Promise<void> {
    await Promise.allSettled(this.#all.map(async (opening) => (await opening)?.()));
  }
}
