import { AnswerMemory } from "./answer-memory.ts";

const GROWTH = 4;
/** Text that is put by before it is turned into bytes. */
const PENDING_CHARS_MAX = 1 << 14;

const NOTHING = Buffer.alloc(0);
const answers = new AnswerMemory();

/**
 * JSON text written piece by piece, where one string of it all, or an object tree, would leave more garbage than the answer
 * has bytes. Takes ASCII alone: UUIDs, resource classes, traits, numbers; nothing is escaped.
 *
 * Pieces are joined as a string, which costs next to nothing until it is read, and become bytes some thousands at a time.
 * Cost: about a nanosecond a byte; byte by byte it would be four.
 */
export class AsciiJson {
  #bytes = answers.take();
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

  /** Writes what stands in other bytes from `from` to `end`. Cost: that of moving memory. */
  writeBytes(bytes: Uint8Array, from: number, end: number): void {
    if (from === end) return;
    this.#flush();
    this.#makeRoom(end - from);
    this.#bytes.set(bytes.subarray(from, end), this.#length);
    this.#length += end - from;
  }

  /** What was written so far; to be read no more after `release`. */
  bytes(): Uint8Array {
    this.#flush();
    return this.#bytes.subarray(0, this.#length);
  }

  /** Leaves the memory to other answers, once what was written is on its way. Repeatable. */
  release(): void {
    if (this.#bytes.length > 0) answers.giveBack(this.#bytes);
    this.#bytes = NOTHING;
    this.#length = 0;
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
    const grown = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * GROWTH, needed));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}
