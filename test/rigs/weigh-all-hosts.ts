import type { HostBatch, WeighedBy } from "../../core/scheduling/weighers/weigher.ts";

/**
 * The weight of every host of every batch, one after the other: the sum of each weigher's normalised weight times its multiplier, as Nova's
 * weight handler computes it. Weights are normalised over all batches together, because cells compete. Cost: two or three passes over the
 * hosts for each weigher.
 */
export class HostWeights {
  #sums = new Float64Array(0);
  #raw = new Float64Array(0);

  /** Valid until the next call. */
  weigh(batches: readonly HostBatch[], weighers: readonly WeighedBy[]): Float64Array {
    const total = batches.reduce((sum, batch) => sum + batch.count, 0);
    if (this.#sums.length < total) {
      this.#sums = new Float64Array(total * 2);
      this.#raw = new Float64Array(total * 2);
    }
    const sums = this.#sums.fill(0, 0, total);
    if (total <= 1) return sums;
    for (const { weigher, multiplier } of weighers) {
      if (multiplier === 0) continue;
      if (weigher.kind === "absolute") {
        forEachBatch(batches, (batch, offset) => weigher.addTo(batch, sums, offset, multiplier));
      } else {
        const raw = this.#raw.fill(0, 0, total);
        let said = false;
        forEachBatch(batches, (batch, offset) => {
          if (weigher.weigh(batch, raw, offset)) said = true;
        });
        if (said) addNormalised(sums, raw, { total, multiplier, lowest: weigher.lowest });
      }
    }
    return sums;
  }
}

function forEachBatch(batches: readonly HostBatch[], visit: (batch: HostBatch, offset: number) => void): void {
  let offset = 0;
  for (const batch of batches) {
    visit(batch, offset);
    offset += batch.count;
  }
}

function addNormalised(
  sums: Float64Array,
  raw: Float64Array,
  {
    total,
    multiplier,
    lowest,
  }: { readonly total: number; readonly multiplier: number; readonly lowest: number | undefined },
): void {
  let least = lowest ?? Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  for (let index = 0; index < total; index += 1) {
    const weight = raw[index]!;
    if (weight > most) most = weight;
    if (lowest === undefined && weight < least) least = weight;
  }
  if (most <= least) return;
  const factor = multiplier / (most - least);
  for (let index = 0; index < total; index += 1) sums[index] = sums[index]! + Math.max(0, raw[index]! - least) * factor;
}
