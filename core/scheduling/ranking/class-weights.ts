import { countsAnywhere, hostMultiplier } from "../weighers/host-multiplier.ts";
import type { AbsoluteWeigher, HostBatch, RelativeWeigher, WeighedBy, Weigher } from "../weighers/weigher.ts";
import type { CellRanking } from "./cell-ranking.ts";
import type { RankingScratch } from "./ranking-scratch.ts";
import { WeightRange } from "./weight-range.ts";

/** The contribution of one weigher to a host's weight: `normalised` times `multiplier`. For an absolute weigher, `normalised` is the raw weight. */
export interface WeightPart {
  readonly weigher: string;
  readonly raw: number;
  readonly normalised: number;
  readonly multiplier: number;
}

/** Hosts of one cell to weigh, and the offset of their values in the scratch's raw weights and sums. */
export interface WeighedHosts {
  readonly ranking: CellRanking;
  /** Index of the cell among the class's cells. */
  readonly cell: number;
  readonly batch: HostBatch;
  readonly offset: number;
}

/** By cell: the multiplier of a host by the slot of its root, or null when every host has the weigher's own multiplier. */
type Multipliers = readonly (((root: number) => number) | null)[];

interface RelativePart {
  readonly weigher: RelativeWeigher;
  readonly weighedBy: WeighedBy;
  multipliers: Multipliers;
  readonly range: WeightRange;
  /** Index of its bucket among those of each host. */
  readonly index: number;
  /** True when the weigher's multiplier is not 0 for some host. */
  counts: boolean;
  /** True when the weigher applies to these requests. */
  said: boolean;
}

interface AbsolutePart {
  readonly weigher: AbsoluteWeigher;
  readonly weighedBy: WeighedBy;
  multipliers: Multipliers;
}

/**
 * Computes the weights of a class's hosts from its weighers, and keeps the ranges with which relative weighers are normalised.
 *
 * Cost: weighing all hosts takes some 50 ns a host. Weighing some of them takes as much for each, and the others are not read.
 */
export class ClassWeights {
  readonly #relative: readonly RelativePart[];
  readonly #absolute: readonly AbsolutePart[];
  /** Weighers with a version, whose weights can change without a change in a view. */
  readonly #versioned: readonly Weigher[];
  /** The relative weighers that contribute to the weights of hosts, because their raw weights differ between hosts. */
  #counting: readonly RelativePart[] = [];
  #broken = false;

  constructor(weighers: readonly WeighedBy[]) {
    const relative: RelativePart[] = [];
    const absolute: AbsolutePart[] = [];
    for (const weighedBy of weighers) {
      const { weigher, multiplier, option } = weighedBy;
      if (multiplier === 0 && option === undefined) continue;
      if (weigher.kind === "absolute") {
        absolute.push({ weigher, weighedBy, multipliers: [] });
        continue;
      }
      const range = new WeightRange(weigher.lowest);
      relative.push({ weigher, weighedBy, multipliers: [], range, index: relative.length, counts: false, said: false });
    }
    this.#relative = relative;
    this.#absolute = absolute;
    this.#versioned = [...relative, ...absolute]
      .map(({ weigher }) => weigher)
      .filter((weigher) => "version" in weigher);
  }

  /** Number of weighers that compare hosts. */
  get relativeCount(): number {
    return this.#relative.length;
  }

  /** Rises when weights may have changed although nothing changed in the views. */
  get version(): number {
    let version = 0;
    for (const weigher of this.#versioned) version += weigher.version ?? 0;
    return version;
  }

  /**
   * Weighs all hosts that fit over the cells of `rankings`, and writes their weights to the scratch's sums. None of them may be counted in
   * a range. The aggregates are read only here, so all hosts must be weighed when aggregates change.
   */
  weighAll(rankings: readonly CellRanking[], all: readonly WeighedHosts[], scratch: RankingScratch): void {
    this.#broken = false;
    const cells = rankings.map(({ cell }) => cell);
    clearSums(all, scratch);
    for (const part of this.#relative) {
      part.counts = countsAnywhere(part.weighedBy, cells);
      part.said = part.counts && weighRaw(part, all, scratch);
      if (!part.said) continue;
      part.multipliers = cells.map(({ facts }) => hostMultiplier(part.weighedBy, facts));
      takeRange(part.range, all, scratch);
      if (part.range.isPoint) continue;
      addRelative(part, all, scratch);
      part.range.settle();
    }
    this.#counting = this.#relative.filter(({ said, range }) => said && !range.isPoint);
    for (const part of this.#absolute) {
      part.multipliers = cells.map(({ facts }) => hostMultiplier(part.weighedBy, facts));
      addAbsolute(part, all, scratch);
    }
  }

  /**
   * Weighs some hosts, ranked or new, and writes their weights to the scratch's sums. Returns false when a weigher applies now that did not
   * apply before.
   */
  weighSome(some: readonly WeighedHosts[], scratch: RankingScratch): boolean {
    clearSums(some, scratch);
    for (const { ranking, batch } of some) {
      for (let index = 0; index < batch.count; index += 1) {
        const root = batch.roots[index]!;
        if (ranking.isRanked(root)) this.drop(ranking, root);
      }
    }
    for (const part of this.#relative) {
      if (!part.counts) continue;
      const says = weighRaw(part, some, scratch);
      if (says && !part.said) return false;
      if (!part.said) continue;
      const { range } = part;
      if (range.isPoint) {
        if (breaksPoint(range, some, scratch)) this.#broken = true;
        continue;
      }
      if (range.isFlat) range.widen(mostOf(some, scratch));
      addRelative(part, some, scratch);
    }
    for (const part of this.#absolute) addAbsolute(part, some, scratch);
    return true;
  }

  /** Removes a ranked host from the ranges. */
  drop(ranking: CellRanking, root: number): void {
    const first = ranking.bucketsOf(root);
    for (const { range, index } of this.#counting) range.drop(ranking.buckets[first + index]!);
  }

  /** True when a range was a single point and has got a second value. It tells no hosts apart until all are weighed again. */
  get broken(): boolean {
    return this.#broken;
  }

  /** Maximum number of ranked hosts that must be weighed again because ranges have moved. */
  get outdated(): number {
    let outdated = 0;
    for (const { range } of this.#counting) if (range.drifted) outdated += range.compared;
    return outdated;
  }

  /** Returns a test for whether a ranked host of a cell is among `outdated` at present. */
  outdatedIn(ranking: CellRanking): (root: number) => boolean {
    const drifted = this.#counting.filter(({ range }) => range.drifted);
    return (root) => {
      const first = ranking.bucketsOf(root);
      return drifted.some(({ range, index }) => range.compares(ranking.buckets[first + index]!));
    };
  }

  /** The parts of a ranked host's weight in the order of the weighers, for those weighers that apply to it and count. */
  partsOf(ranking: CellRanking, root: number): WeightPart[] {
    const batch = ranking.batchOf(root);
    const raw = new Float64Array(1);
    const parts: WeightPart[] = [];
    for (const { weigher, weighedBy, range, said } of this.#relative) {
      if (!said || !weigher.weigh(batch, raw.fill(0), 0)) continue;
      const multiplier = hostMultiplier(weighedBy, batch.facts)?.(root) ?? weighedBy.multiplier;
      if (multiplier === 0) continue;
      parts.push({ weigher: weigher.name, raw: raw[0]!, normalised: range.normalise(raw[0]!), multiplier });
    }
    for (const { weigher, weighedBy } of this.#absolute) {
      weigher.addTo(batch, raw.fill(0), 0, 1);
      const multiplier = hostMultiplier(weighedBy, batch.facts)?.(root) ?? weighedBy.multiplier;
      if (raw[0] !== 0 && multiplier !== 0)
        parts.push({ weigher: weigher.name, raw: raw[0]!, normalised: raw[0]!, multiplier });
    }
    return parts;
  }
}

function clearSums(weighed: readonly WeighedHosts[], { sums }: RankingScratch): void {
  for (const { batch, offset } of weighed) clear(sums, offset, batch.count);
}

/** There are usually few values, for which a call of `fill` would cost more. */
function clear(values: Float64Array, offset: number, count: number): void {
  for (let at = offset; at < offset + count; at += 1) values[at] = 0;
}

/** Writes the weigher's weights to the scratch's raw weights. Returns false when it does not apply. */
function weighRaw({ weigher }: RelativePart, weighed: readonly WeighedHosts[], { raw }: RankingScratch): boolean {
  let said = false;
  for (const { batch, offset } of weighed) {
    if (weigher.weigh(batch, raw, offset)) said = true;
    else clear(raw, offset, batch.count);
  }
  return said;
}

function takeRange(range: WeightRange, all: readonly WeighedHosts[], scratch: RankingScratch): void {
  const most = mostOf(all, scratch);
  if (most === Number.NEGATIVE_INFINITY) range.take(0, 0);
  else range.take(leastOf(all, scratch), most);
}

function mostOf(weighed: readonly WeighedHosts[], { raw }: RankingScratch): number {
  let most = Number.NEGATIVE_INFINITY;
  for (const { batch, offset } of weighed)
    for (let at = offset; at < offset + batch.count; at += 1) if (raw[at]! > most) most = raw[at]!;
  return most;
}

function leastOf(weighed: readonly WeighedHosts[], { raw }: RankingScratch): number {
  let least = Number.POSITIVE_INFINITY;
  for (const { batch, offset } of weighed)
    for (let at = offset; at < offset + batch.count; at += 1) if (raw[at]! < least) least = raw[at]!;
  return least;
}

function breaksPoint(range: WeightRange, some: readonly WeighedHosts[], { raw }: RankingScratch): boolean {
  for (const { batch, offset } of some)
    for (let at = offset; at < offset + batch.count; at += 1) if (range.breaks(raw[at]!)) return true;
  return false;
}

/** Adds the normalised raw weights to the scratch's sums, and counts them in the range. */
function addRelative(part: RelativePart, weighed: readonly WeighedHosts[], { raw, sums }: RankingScratch): void {
  const { range, weighedBy, multipliers, index: bucketIndex } = part;
  for (const { ranking, cell, batch, offset } of weighed) {
    const { buckets } = ranking;
    const multiplierOf = multipliers[cell];
    for (let index = 0; index < batch.count; index += 1) {
      const root = batch.roots[index]!;
      const weight = raw[offset + index]!;
      const multiplier = multiplierOf ? multiplierOf(root) : weighedBy.multiplier;
      buckets[ranking.bucketsOf(root) + bucketIndex] = range.add(weight);
      sums[offset + index] = sums[offset + index]! + multiplier * range.normalise(weight);
    }
  }
}

function addAbsolute(part: AbsolutePart, weighed: readonly WeighedHosts[], { raw, sums }: RankingScratch): void {
  const { weigher, weighedBy, multipliers } = part;
  for (const { cell, batch, offset } of weighed) {
    const multiplierOf = multipliers[cell];
    if (!multiplierOf) {
      if (weighedBy.multiplier !== 0) weigher.addTo(batch, sums, offset, weighedBy.multiplier);
      continue;
    }
    raw.fill(0, offset, offset + batch.count);
    weigher.addTo(batch, raw, offset, 1);
    for (let index = 0; index < batch.count; index += 1) {
      const at = offset + index;
      sums[at] = sums[at]! + multiplierOf(batch.roots[index]!) * raw[at]!;
    }
  }
}
