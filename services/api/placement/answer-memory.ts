/** The memory of a new answer when there is none to take over. */
const START_BYTES = 1 << 16;
/** Most that waits for the next answers. */
const KEPT_BYTES_MAX = 32 << 20;

/**
 * Memory that big answers take over from each other. Fresh memory costs more than what is written into it - every page of it is
 * a fault - and megabytes of garbage an answer keep the collector busy.
 */
export class AnswerMemory {
  readonly #kept: Buffer[] = [];
  #keptBytes = 0;

  /** The biggest piece that waits, else a small one. Nobody else writes to it until it is given back. */
  take(): Buffer {
    const memory = this.#kept.pop();
    if (memory === undefined) return Buffer.allocUnsafeSlow(START_BYTES);
    this.#keptBytes -= memory.length;
    return memory;
  }

  /** To be called once, when nobody reads it any more. */
  giveBack(memory: Buffer): void {
    if (this.#keptBytes + memory.length > KEPT_BYTES_MAX) return;
    this.#kept.push(memory);
    this.#kept.sort((a, b) => a.length - b.length);
    this.#keptBytes += memory.length;
  }
}
