import type { LedgerView } from "../../../core/ledger/ledger-view.ts";
import type { AsciiJson } from "./ascii-json.ts";

/** Maximum number of bytes that are kept for one view. When they are exceeded, all are dropped. */
const BYTES_MAX = 16 << 20;
const START_BYTES = 1 << 18;

/**
 * Keeps the summaries of a view's providers as bytes for as long as their tree is unchanged. They are the greater part of an answer with
 * many trees, and few trees change between two answers.
 *
 * Summaries that were written one after the other are adjacent, each with its comma, and are copied together.
 */
export class KeptSummaries {
  readonly #view: LedgerView;
  #bytes = Buffer.allocUnsafeSlow(START_BYTES);
  #length = 0;
  /** Start and end of each slot's summary; 0 for a slot whose summary is not kept. */
  #start = new Int32Array(0);
  #end = new Int32Array(0);
  /** The position up to which the view's changes were read. */
  #mark: number;

  constructor(view: LedgerView) {
    this.#view = view;
    this.#mark = view.changes.mark();
  }

  /** Writes the summaries of these slots, the first one after `comma`. `textOf` creates a summary that is not kept. */
  write(json: AsciiJson, comma: string, slots: readonly number[], textOf: (slot: number) => string): void {
    if (slots.length === 0) return;
    this.#forgetChanged();
    json.write(comma);
    let from = 0;
    let end = 0;
    for (const slot of slots) {
      if (this.#end[slot] === 0 && !this.#keep(slot, textOf(slot))) {
        // Dropping all summaries also drops those that wait to be copied, so these are copied first.
        json.writeBytes(this.#bytes, from, end);
        this.#forgetAll();
        this.#keep(slot, textOf(slot));
        from = end = 0;
      }
      if (this.#start[slot] !== end) {
        json.writeBytes(this.#bytes, from, end);
        from = this.#start[slot]!;
      }
      end = this.#end[slot]!;
    }
    json.writeBytes(this.#bytes, from, end - 1);
  }

  /** Keeps a summary. Returns false when there is no room for it. */
  #keep(slot: number, text: string): boolean {
    const length = text.length + 1;
    if (this.#length + length > this.#bytes.length) {
      if (this.#length > 0 && this.#length + length > BYTES_MAX) return false;
      const grown = Buffer.allocUnsafeSlow(
        Math.max(this.#length + length, Math.min(BYTES_MAX, this.#bytes.length * 4)),
      );
      this.#bytes.copy(grown, 0, 0, this.#length);
      this.#bytes = grown;
    }
    this.#start[slot] = this.#length;
    this.#bytes.write(`${text},`, this.#length, "latin1");
    this.#length += length;
    this.#end[slot] = this.#length;
    return true;
  }

  #forgetChanged(): void {
    const { changes, slots } = this.#view;
    const forget = (root: number): void => {
      this.#end[root] = 0;
      for (const slot of slots.descendants(root)) this.#end[slot] = 0;
    };
    if (this.#start.length < slots.capacity || !changes.since(this.#mark, forget)) this.#forgetAll();
    this.#mark = changes.mark();
  }

  #forgetAll(): void {
    const { capacity } = this.#view.slots;
    this.#length = 0;
    this.#start = new Int32Array(capacity);
    this.#end = new Int32Array(capacity);
  }
}
