/** Initial size of an answer's memory when there is none to reuse. */
const START_BYTES = 1 << 16;
/** Maximum number of bytes that are kept for later answers. */
const KEPT_BYTES_MAX = 32 << 20;

/**
 * Memory that big answers reuse. Fresh memory costs more than writing to it, because every page causes a page fault, and megabytes of
 * garbage per answer keep the garbage collector busy.
 */
export class AnswerMemory {
  readonly #kept: Buffer[] = [];
  #keptBytes = 0;

  /** Returns a kept buffer, or else a small new one. Nothing else writes to it until it is given back. */
  take(): Buffer {
    const memory = this.#kept.pop();
    if (memory === undefined) return Buffer.allocUnsafeSlow(START_BYTES);
    this.#keptBytes -= memory.length;
    return memory;
  }

  /** Returns a buffer for reuse. Call this once, when the buffer is no longer read. */
  giveBack(memory: Buffer): void {
    if (this.#keptBytes + memory.length > KEPT_BYTES_MAX) return;
    this.#kept.push(memory);
    this.#kept.sort((a, b) => a.length - b.length);
    this.#keptBytes += memory.length;
  }
}
