import type { GroupPlacement } from "./group-placement.ts";

/** Bins of providers that are alike. A provider that the unnumbered group uses has a bin to itself. */
export class ProviderBins {
  count = 0;
  /** By bin: number of free providers. */
  left = new Int32Array(0);
  readonly #placement: GroupPlacement;
  /** The providers, bin by bin, and the place at which each bin begins. */
  #providers = new Int32Array(0);
  #starts = new Int32Array(0);

  constructor(placement: GroupPlacement) {
    this.#placement = placement;
  }

  /** The provider of a bin at a place. */
  provider(bin: number, place: number): number {
    return this.#providers[this.#starts[bin]! + place]!;
  }

  fill(): void {
    const { kinds, serves } = this.#placement;
    if (this.left.length < kinds.count) {
      this.left = new Int32Array(kinds.slots.length);
      this.#providers = new Int32Array(kinds.slots.length);
      this.#starts = new Int32Array(kinds.slots.length);
    }
    this.count = 0;
    let put = 0;
    let kindOfLast = -1;
    for (let provider = 0; provider < kinds.count; provider += 1) {
      if (serves[provider] !== 0) continue;
      this.#put(provider, put, kinds.kind[provider] !== kindOfLast);
      put += 1;
      kindOfLast = kinds.kind[provider]!;
    }
    for (let provider = 0; provider < kinds.count; provider += 1) {
      if (serves[provider] === 0) continue;
      this.#put(provider, put, true);
      put += 1;
    }
  }

  #put(provider: number, place: number, opensBin: boolean): void {
    this.#providers[place] = provider;
    if (opensBin) {
      this.#starts[this.count] = place;
      this.left[this.count] = 0;
      this.count += 1;
    }
    this.left[this.count - 1] = this.left[this.count - 1]! + 1;
  }
}
