const START_BYTES = 1 << 16;
const GROWTH = 4;
/** Text that is put by before it is turned into bytes. */
const PENDING_CHARS_MAX = 1 << 14;

/**
 * JSON text written piece by piece, where one string of it all, or an object tree, would leave more garbage than the answer
 * has bytes. Takes ASCII alone: UUIDs, resource classes, traits, numbers; nothing is escaped.
 *
 * Pieces are joined as a string, which costs next to nothing until it is read, and become bytes some thousands at a time.
 * Cost: about a nanosecond a byte; byte by byte it would be four.
 */
export class AsciiJson {
  #bytes = Buffer.allocUnsafe(START_BYTES);
  #length = 0;
  #pending = "";

  /** Every character must be ASCII. */
  write(text: string): void {
    this.#pending += text;
    if (this.#pending.length > PENDING_CHARS_MAX) this.#flush();
  }

  /** Bytes written so far: where the next piece will stand. */
  get length(): number {
    return this.#length + this.#pending.length;
  }

  /** Writes once more what stands from byte `from` to byte `end`. Cost: that of moving memory. */
  repeat(from: number, end: number): void {
    this.#flush();
    this.#makeRoom(end - from);
    this.#bytes.copyWithin(this.#length, from, end);
    this.#length += end - from;
  }

  /** What was written so far. */
  bytes(): Uint8Array {
    this.#flush();
    return this.#bytes.subarray(0, this.#length);
  }

  #flush(): void {
    if (this.#pending === "") return;
    this.#makeRoom(this.#pending.length);
    this.#length += this.#bytes.write(this.#pending, this.#length, "latin1");
    this.#pending = "";
  }

  /** Memory that is not written to costs nothing, so that few and big steps are the cheapest. */
  #makeRoom(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(this.#bytes.length * GROWTH, needed));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}
