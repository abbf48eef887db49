/** Changes remembered unless told otherwise: a reader that has missed more than these begins anew. */
const REMEMBERED = 1 << 16;

/**
 * Which roots of a ledger view changed, in order, for readers who keep something of their own for each root. A reader marks
 * up to where it has read, and later asks for what came after.
 *
 * A bounded ring: a reader that was away for long is told that everything may have changed.
 */
export class ChangedRoots {
  readonly #roots: Int32Array;
  #position = 0;
  /** What is before can be told only as "all". */
  #knownFrom = 0;
  /** Entries before this position were read by somebody. */
  #readTo = 0;

  constructor(remembered: number = REMEMBERED) {
    this.#roots = new Int32Array(remembered);
  }

  /** The position after the last change: a reader that begins now, or has just read, gives it to `since` the next time. */
  mark(): number {
    this.#readTo = this.#position;
    return this.#position;
  }

  /** Something about the tree of this root, or about its host, is not as it was. Repeated for one root it is one change. */
  touch(root: number): void {
    const last = this.#position - 1;
    if (last >= this.#readTo && this.#roots[last % this.#roots.length] === root) return;
    this.#roots[this.#position % this.#roots.length] = root;
    this.#position += 1;
    this.#knownFrom = Math.max(this.#knownFrom, this.#position - this.#roots.length);
  }

  /** Everything may be different. */
  touchAll(): void {
    this.#position += 1;
    this.#knownFrom = this.#position;
  }

  /** Calls `visit` for each root that changed since the mark, for some several times. False: all may have, and none was visited. */
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
