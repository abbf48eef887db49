import type { DecisionStage, StageWatch } from "../stage-watch.ts";

/** Buffers that the rankings of one chooser share: what is in them is valid within one step only. */
export class RankingScratch {
  roots = new Int32Array(0);
  changed = new Int32Array(0);
  raw = new Float64Array(0);
  sums = new Float64Array(0);
  /** Of the decision under way; null: nobody looks. */
  watch: StageWatch | null = null;
  #stamps = new Int32Array(0);
  #stamp = 0;

  enter(stage: DecisionStage): void {
    this.watch?.enter(stage);
  }

  /** Room for so many roots; what was in the buffers is lost when they grow. */
  reserve(roots: number): void {
    if (this.roots.length >= roots) return;
    this.roots = new Int32Array(roots * 2);
    this.changed = new Int32Array(roots * 2);
    this.raw = new Float64Array(roots * 2);
    this.sums = new Float64Array(roots * 2);
  }

  /** From now on every slot up to this one is new. */
  beginDistinct(slots: number): void {
    if (this.#stamps.length < slots) {
      this.#stamps = new Int32Array(slots * 2);
      this.#stamp = 0;
    }
    this.#stamp += 1;
  }

  /** Whether the slot is seen for the first time. */
  isNew(slot: number): boolean {
    if (this.#stamps[slot] === this.#stamp) return false;
    this.#stamps[slot] = this.#stamp;
    return true;
  }
}
