/** The default number of changes that are remembered. A reader that has missed more must start again. */
const REMEMBERED = 1 << 16;
/** Room at first. A small cloud changes few roots between two readings, and a view is made at each start of a scheduler. */
const AT_FIRST = 1 << 8;

/**
 * The roots of a ledger view that changed, in order, for readers that cache something for each root. A reader takes a mark when it has read
 * everything, and later asks for the changes since that mark.
 *
 * The changes are kept in a bounded ring, so a reader with an old mark is told that everything may have changed.
 */
export class ChangedRoots {
  /** A ring of `remembered` changes, once it has grown to that. Before, each change is at its position. */
  #roots: Int32Array;
  readonly #remembered: number;
  #position = 0;
  /** Changes before this position are no longer known. */
  #knownFrom = 0;
  /** A reader has read the entries before this position. */
  #readTo = 0;

  constructor(remembered: number = REMEMBERED) {
    this.#remembered = remembered;
    this.#roots = new Int32Array(Math.min(AT_FIRST, remembered));
  }

  /** The position after the last change. A reader that has read everything passes it to `since` the next time. */
  mark(): number {
    this.#readTo = this.#position;
    return this.#position;
  }

  /** The position after the last change. It differs from a reader's mark when something changed since then. */
  get position(): number {
    return this.#position;
  }

  /** Records that the tree of this root, or its host, has changed. Repetitions for one root are recorded once. */
  touch(root: number): void {
    const last = this.#position - 1;
    if (last >= this.#readTo && this.#roots[last % this.#roots.length] === root) return;
    if (this.#position >= this.#roots.length && this.#roots.length < this.#remembered) this.#grow();
    this.#roots[this.#position % this.#roots.length] = root;
    this.#position += 1;
    this.#knownFrom = Math.max(this.#knownFrom, this.#position - this.#roots.length);
  }

  #grow(): void {
    const roots = new Int32Array(Math.min(this.#remembered, Math.max(this.#roots.length * 2, this.#position + 1)));
    roots.set(this.#roots);
    this.#roots = roots;
  }

  /** Records that everything may have changed. */
  touchAll(): void {
    this.#position += 1;
    this.#knownFrom = this.#position;
  }

  /**
   * Calls `visit` for each root that changed since the mark, possibly several times. Returns false, without a call, when everything may
   * have changed.
   */
  since(mark: number, visit: (root: number) => void): boolean {
    if (mark < this.#knownFrom) return false;
    let index = mark % this.#roots.length;
    for (let at = mark; at < this.#position; at += 1) {
      visit(this.#roots[index]!);
      index = index + 1 === this.#roots.length ? 0 : index + 1;
    }
    return true;
  }
}
