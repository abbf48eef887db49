import type { HostBatch, WeighedBy, Weigher } from "./weighers/weigher.ts";

/**
 * The weight of every host of every batch, one after the other: the sum of each weigher's normalised weight times its
 * multiplier, as Nova's weight handler does it. Normalised over all batches together: cells compete.
 *
 * Cost: two or three passes over the hosts a weigher.
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
      const raw = this.#raw.fill(0, 0, total);
      if (weighAll(weigher, batches, raw)) addNormalised(sums, raw, total, weigher.scale, multiplier);
    }
    return sums;
  }
}

function weighAll(weigher: Weigher, batches: readonly HostBatch[], raw: Float64Array): boolean {
  let offset = 0;
  let said = false;
  for (const batch of batches) {
    if (weigher.weigh(batch, raw, offset)) said = true;
    offset += batch.count;
  }
  return said;
}

function addNormalised(
  sums: Float64Array,
  raw: Float64Array,
  total: number,
  scale: Weigher["scale"],
  multiplier: number,
): void {
  if (scale.kind === "absolute") {
    for (let index = 0; index < total; index += 1) sums[index] = sums[index]! + raw[index]! * multiplier;
    return;
  }
  let lowest = scale.lowest ?? Number.POSITIVE_INFINITY;
  let highest = Number.NEGATIVE_INFINITY;
  for (let index = 0; index < total; index += 1) {
    const weight = raw[index]!;
    if (weight > highest) highest = weight;
    if (scale.lowest === undefined && weight < lowest) lowest = weight;
  }
  if (highest <= lowest) return;
  const factor = multiplier / (highest - lowest);
  for (let index = 0; index < total; index += 1)
    sums[index] = sums[index]! + Math.max(0, raw[index]! - lowest) * factor;
}
