import { countsAnywhere, hostMultiplier } from "../weighers/host-multiplier.ts";
import type { AbsoluteWeigher, HostBatch, RelativeWeigher, WeighedBy, Weigher } from "../weighers/weigher.ts";
import type { CellRanking } from "./cell-ranking.ts";
import type { RankingScratch } from "./ranking-scratch.ts";
import { WeightRange } from "./weight-range.ts";

/** What one weigher adds to a host's weight: `normalised` times `multiplier`. An absolute one's weight is normal as it is. */
export interface WeightPart {
  readonly weigher: string;
  readonly raw: number;
  readonly normalised: number;
  readonly multiplier: number;
}

/** Hosts of one cell that are weighed, and where theirs begins in the scratch's raw weights and sums. */
export interface WeighedHosts {
  readonly ranking: CellRanking;
  /** Which of the class's cells it is. */
  readonly cell: number;
  readonly batch: HostBatch;
  readonly offset: number;
}

/** By cell: the multiplier of a host, by the slot of its root; null: of every host the weigher's own. */
type Multipliers = readonly (((root: number) => number) | null)[];

interface RelativePart {
  readonly weigher: RelativeWeigher;
  readonly weighedBy: WeighedBy;
  multipliers: Multipliers;
  readonly range: WeightRange;
  /** Which of the rankings' buckets are its. */
  readonly index: number;
  /** It counts for some host. */
  counts: boolean;
  /** It has something to say of these requests. */
  said: boolean;
}

interface AbsolutePart {
  readonly weigher: AbsoluteWeigher;
  readonly weighedBy: WeighedBy;
  multipliers: Multipliers;
}

/**
 * How much the hosts of a class weigh: what its weighers say, and the ranges in which those that compare hosts normalise.
 *
 * Cost: weighing all some 50 ns a host; weighing some of them as much, the others are not looked at.
 */
export class ClassWeights {
  readonly #relative: readonly RelativePart[];
  readonly #absolute: readonly AbsolutePart[];
  /** Weighers that may change their minds. */
  readonly #versioned: readonly Weigher[];
  /** Of the relative ones those whose ranges count hosts. */
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

  /** Weighers that compare hosts. */
  get relativeCount(): number {
    return this.#relative.length;
  }

  /** Rises when hosts may weigh differently although nothing changed in their views. */
  get version(): number {
    let version = 0;
    for (const weigher of this.#versioned) version += weigher.version ?? 0;
    return version;
  }

  /**
   * Weighs all hosts that fit, none of which is counted any more, over the cells of `rankings`; what they weigh goes to the scratch's sums.
   * Which aggregates there are it learns here: when they change, all are weighed.
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
   * Weighs some hosts, be they ranked or new; what they weigh goes to the scratch's sums. False: a weigher that had nothing to say
   * speaks up now.
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

  /** A ranked host is none any more. */
  drop(ranking: CellRanking, root: number): void {
    const first = ranking.bucketsOf(root);
    for (const { range, index } of this.#counting) range.drop(ranking.buckets[first + index]!);
  }

  /** A range was a point and is none any more: nothing is told apart in it until all are weighed. */
  get broken(): boolean {
    return this.#broken;
  }

  /** Ranked hosts that are to be weighed once more since ranges have moved, at most. */
  get outdated(): number {
    let outdated = 0;
    for (const { range } of this.#counting) if (range.drifted) outdated += range.compared;
    return outdated;
  }

  /** Tells of the ranked hosts of a cell whether they are among `outdated`, as things are now. */
  outdatedIn(ranking: CellRanking): (root: number) => boolean {
    const drifted = this.#counting.filter(({ range }) => range.drifted);
    return (root) => {
      const first = ranking.bucketsOf(root);
      return drifted.some(({ range, index }) => range.compares(ranking.buckets[first + index]!));
    };
  }

  /** What the weight of a ranked host is made of, in the order of the weighers: those that have something to say of it, and count. */
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

/** Mostly a few: a call of `fill` would cost more. */
function clear(values: Float64Array, offset: number, count: number): void {
  for (let at = offset; at < offset + count; at += 1) values[at] = 0;
}

/** What the weigher says, to the scratch's raw weights; false: nothing. */
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

/** Adds what the scratch's raw weights come to once normalised, and counts them in the range. */
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
