import type { LedgerView } from "../../../core/ledger/view.ts";
import type { AsciiJson } from "./ascii-json.ts";

/** Text that is kept of one view; when more comes, all of it is forgotten. */
const BYTES_MAX = 16 << 20;
const START_BYTES = 1 << 18;

/**
 * The summaries of a view's providers as bytes, kept from answer to answer for as long as their tree stays as it is: of an
 * answer of many trees they are the greater part, and few trees change between two answers.
 *
 * Summaries that were written one after the other lie one after the other, each with its comma, and are copied together.
 */
export class KeptSummaries {
  readonly #view: LedgerView;
  #bytes = Buffer.allocUnsafeSlow(START_BYTES);
  #length = 0;
  /** By slot: where its summary starts, and where it ends; 0 for one that is not kept. */
  #start = new Int32Array(0);
  #end = new Int32Array(0);
  /** Up to where the view's changes were read. */
  #mark: number;

  constructor(view: LedgerView) {
    this.#view = view;
    this.#mark = view.changes.mark();
  }

  /** Writes the summaries of these slots, each behind this comma or one of its own. `textOf` writes one that is not kept. */
  write(json: AsciiJson, comma: string, slots: readonly number[], textOf: (slot: number) => string): void {
    if (slots.length === 0) return;
    this.#forgetChanged();
    json.write(comma);
    let from = 0;
    let end = 0;
    for (const slot of slots) {
      if (this.#end[slot] === 0 && !this.#keep(slot, textOf(slot))) {
        // All was forgotten, also what waits to be copied: so it goes first.
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

  /** False: there is no room for it. */
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
