import type { DecisionStage, StageWatch } from "../stage-watch.ts";
import { RootPlaces } from "./root-places.ts";

/** Length of a new batch of roots. Most batches have a few. */
const BATCH_MIN = 16;

/** Buffers that the rankings of one chooser share. Their contents are valid within one step only. */
export class RankingScratch {
  roots = new Int32Array(0);
  changed = new Int32Array(0);
  raw = new Float64Array(0);
  sums = new Float64Array(0);
  /** The watch of the current decision, or null when there is none. */
  watch: StageWatch | null = null;
  readonly #batches: Int32Array[] = [];
  readonly #places = new WeakMap<object, RootPlaces>();
  #bySlot = new Float64Array(0);
  #stamps = new Int32Array(0);
  #stamp = 0;

  /** The places in which rankings keep their records of roots. All rankings over the view with these slots share them. */
  placesOf(slots: object): RootPlaces {
    let places = this.#places.get(slots);
    if (!places) {
      places = new RootPlaces();
      this.#places.set(slots, places);
    }
    return places;
  }

  /** A buffer indexed by slot, long enough for `slots` of them. */
  bySlot(slots: number): Float64Array {
    if (this.#bySlot.length < slots) this.#bySlot = new Float64Array(slots);
    return this.#bySlot;
  }

  /** The roots of one of several batches that are in use at once, with room for `roots` of them. */
  batch(index: number, roots: number): Int32Array {
    const known = this.#batches[index];
    if (known && known.length >= roots) return known;
    const batch = new Int32Array(Math.max(BATCH_MIN, roots));
    this.#batches[index] = batch;
    return batch;
  }

  enter(stage: DecisionStage): void {
    this.watch?.enter(stage);
  }

  /** Ensures that the buffers have room for this many roots. The contents are lost when the buffers grow. */
  reserve(roots: number): void {
    if (this.roots.length >= roots) return;
    this.roots = new Int32Array(roots * 2);
    this.changed = new Int32Array(roots * 2);
    this.raw = new Float64Array(roots * 2);
    this.sums = new Float64Array(roots * 2);
  }

  /** Begins a new pass in which `isNew` has not seen any slot below this count. */
  beginDistinct(slots: number): void {
    if (this.#stamps.length < slots) {
      this.#stamps = new Int32Array(slots * 2);
      this.#stamp = 0;
    }
    this.#stamp += 1;
  }

  /** Whether the slot is seen for the first time in this pass. */
  isNew(slot: number): boolean {
    if (this.#stamps[slot] === this.#stamp) return false;
    this.#stamps[slot] = this.#stamp;
    return true;
  }
}
