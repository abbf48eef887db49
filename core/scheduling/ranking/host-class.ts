import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { HostFilter } from "../filters/host-filter.ts";
import type { BoundFilter } from "../filters/host-filters.ts";
import type { PlacementQuery } from "../placement-query.ts";
import type { StageWatch } from "../stage-watch.ts";
import { countsAnywhere, hostMultiplier } from "../weighers/host-multiplier.ts";
import type { AbsoluteWeigher, HostBatch, RelativeWeigher, WeighedBy } from "../weighers/weigher.ts";
import { type CellHosts, CellRanking } from "./cell-ranking.ts";
import type { RankingScratch } from "./ranking-scratch.ts";
import { WeightRange } from "./weight-range.ts";

/** What says which class a request belongs to. */
export interface ClassAsk {
  readonly query: PlacementQuery;
  readonly spec: ServerSpec | null;
  readonly filters: readonly HostFilter[];
  readonly weighers: readonly WeighedBy[];
  readonly watch?: StageWatch | undefined;
}

/** What one weigher adds to a host's weight: `normalised` times `multiplier`. An absolute one's weight is normal as it is. */
export interface WeightPart {
  readonly weigher: string;
  readonly raw: number;
  readonly normalised: number;
  readonly multiplier: number;
}

/** All are weighed anew after at least one change for so many hosts, so that it costs each change little. */
const HOSTS_PER_CHANGE = 2;

interface RelativePart {
  readonly weigher: RelativeWeigher;
  readonly weighedBy: WeighedBy;
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
}

/** Hosts of one cell that were sieved and filtered, and where theirs begins in the scratch's raw weights and sums. */
interface SievedPart {
  readonly ranking: CellRanking;
  readonly batch: HostBatch;
  readonly offset: number;
}

/**
 * A class of requests - all that ask the same - over the hosts of some cells: who fits, ranked, kept up to date with the views by
 * looking again at those hosts only that changed.
 *
 * - made anew: all hosts are sieved and weighed (at first, when a view cannot tell what changed, when a weigher's own
 *   mind changed)
 * - weighed anew: the hosts that fit are weighed once more (when the ranges of weights have moved)
 * - kept up: from then on; each changed host is sieved, weighed and moved
 *
 * Cost: made anew some 100 ns a host, more for hosts of several providers; weighed anew some 60 ns a host that fits; kept up some 500 ns a
 * changed host.
 */
export class HostClass {
  readonly rankings: readonly CellRanking[];
  readonly #relative: readonly RelativePart[];
  readonly #absolute: readonly AbsolutePart[];
  #made = false;
  #weigherVersion = 0;
  #changedSinceWeighed = 0;
  #timesMade = 0;

  constructor({ query, spec, weighers }: Pick<ClassAsk, "query" | "spec" | "weighers">, cells: readonly CellHosts[]) {
    const counting = weighers.filter(({ multiplier, option }) => multiplier !== 0 || option !== undefined);
    this.#relative = counting
      .flatMap((weighedBy) =>
        weighedBy.weigher.kind === "relative" ? [{ weigher: weighedBy.weigher, weighedBy }] : [],
      )
      .map((part, index) => ({
        ...part,
        index,
        range: new WeightRange(part.weigher.lowest),
        counts: false,
        said: false,
      }));
    this.#absolute = counting.flatMap((weighedBy) =>
      weighedBy.weigher.kind === "absolute" ? [{ weigher: weighedBy.weigher, weighedBy }] : [],
    );
    this.rankings = cells.map((cell) => new CellRanking(cell, { query, spec }, this.#relative.length));
  }

  /** Hosts that fit as far as is known. */
  get count(): number {
    let count = 0;
    for (const { sorted } of this.rankings) count += sorted.count;
    return count;
  }

  /** How often all hosts were looked at. */
  get timesMade(): number {
    return this.#timesMade;
  }

  get memoryBytes(): number {
    return this.rankings.reduce((sum, ranking) => sum + ranking.memoryBytes, 4_096);
  }

  /** Catches up with the views. `filters`: by cell, those whose verdict all requests of the class share, as bound now. */
  refresh(scratch: RankingScratch, filters: readonly (readonly BoundFilter[])[]): void {
    if (!this.#made || this.#weigherVersion !== this.#weigherVersionNow() || !this.#keepAllUp(scratch, filters)) {
      this.#makeAnew(scratch, filters);
    } else if (this.#rangesMoved) {
      this.#weighAnew(scratch);
    }
  }

  /** False: it cannot be kept up any more. */
  #keepAllUp(scratch: RankingScratch, filters: readonly (readonly BoundFilter[])[]): boolean {
    for (const [index, ranking] of this.rankings.entries()) {
      const changed = ranking.takeChanged(scratch);
      if (changed === null) return false;
      if (changed > 0 && !this.#keepUp(ranking, scratch, changed, filters[index]!)) return false;
    }
    return true;
  }

  get #rangesMoved(): boolean {
    const mayWait = this.#changedSinceWeighed * HOSTS_PER_CHANGE < this.count;
    return this.#relative.some(({ said, range }) => said && (mayWait ? range.isPoint : range.drifted));
  }

  /** The request does not fit on this host although it seemed so: out, until the host changes. */
  leaveOut(ranking: CellRanking, root: number, code: number): void {
    if (!ranking.isRanked(root)) return;
    this.#unrank(ranking, root);
    ranking.misfits.set(root, code);
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

  #weigherVersionNow(): number {
    let version = 0;
    for (const { weigher } of this.#relative) version += weigher.version ?? 0;
    for (const { weigher } of this.#absolute) version += weigher.version ?? 0;
    return version;
  }

  #makeAnew(scratch: RankingScratch, filters: readonly (readonly BoundFilter[])[]): void {
    this.#made = true;
    this.#timesMade += 1;
    this.#weigherVersion = this.#weigherVersionNow();
    scratch.reserve(this.rankings.reduce((sum, { cell }) => sum + cell.view.slots.rootCount, 0));
    let total = 0;
    const parts = this.rankings.map((ranking, index) => {
      const batch = ranking.sieveAll(scratch, total, filters[index]!);
      const part = { ranking, batch, offset: total };
      total += batch.count;
      return part;
    });
    this.#weighAll(parts, total, scratch);
  }

  #weighAnew(scratch: RankingScratch): void {
    scratch.reserve(this.count);
    let total = 0;
    const parts = this.rankings.map((ranking) => {
      const batch = ranking.takeRanked(scratch, total);
      const part = { ranking, batch, offset: total };
      total += batch.count;
      return part;
    });
    this.#weighAll(parts, total, scratch);
  }

  /** `parts`: all hosts that fit, of which none is ranked. */
  #weighAll(parts: readonly SievedPart[], total: number, scratch: RankingScratch): void {
    this.#changedSinceWeighed = 0;
    const { sums, raw } = scratch;
    sums.fill(0, 0, total);
    // Which aggregates there are is told by all hosts at once: then everything is made anew.
    const cells = this.rankings.map(({ cell }) => cell);
    for (const part of this.#relative) {
      part.counts = countsAnywhere(part.weighedBy, cells);
      part.said = false;
      if (!part.counts) continue;
      raw.fill(0, 0, total);
      for (const { batch, offset } of parts) if (part.weigher.weigh(batch, raw, offset)) part.said = true;
      if (!part.said) continue;
      takeRange(part.range, raw, total);
      for (const sieved of parts) addRelative(part, sieved, scratch);
      part.range.settle();
    }
    for (const sieved of parts) {
      const { ranking, batch, offset } = sieved;
      for (const part of this.#absolute) addAbsolute(part, sieved, scratch);
      const roots = batch.roots.subarray(0, batch.count);
      for (let index = 0; index < batch.count; index += 1) ranking.weights[roots[index]!] = sums[offset + index]!;
      ranking.sorted.fill(roots);
    }
  }

  /** False: a weigher that had nothing to say speaks up now. */
  #keepUp(ranking: CellRanking, scratch: RankingScratch, changed: number, filters: readonly BoundFilter[]): boolean {
    this.#changedSinceWeighed += changed;
    const { roots, raw, sums } = scratch;
    for (let index = 0; index < changed; index += 1) {
      const root = roots[index]!;
      if (ranking.isRanked(root)) this.#unrank(ranking, root);
    }
    const batch = ranking.sieveChanged(scratch, changed, filters);
    const { count } = batch;
    if (count === 0) return true;
    const sieved = { ranking, batch, offset: 0 };
    sums.fill(0, 0, count);
    for (const part of this.#relative) {
      if (!part.counts) continue;
      raw.fill(0, 0, count);
      const says = part.weigher.weigh(batch, raw, 0);
      if (says && !part.said) return false;
      if (part.said) addRelative(part, sieved, scratch);
    }
    for (const part of this.#absolute) addAbsolute(part, sieved, scratch);
    for (let index = 0; index < count; index += 1) {
      const root = roots[index]!;
      ranking.weights[root] = sums[index]!;
      ranking.sorted.insert(root);
    }
    return true;
  }

  #unrank(ranking: CellRanking, root: number): void {
    ranking.sorted.remove(root);
    ranking.weights[root] = Number.NaN;
    for (const { said, range, index } of this.#relative)
      if (said) range.drop(ranking.buckets[ranking.bucketAt(root, index)]!);
  }
}

function takeRange(range: WeightRange, raw: Float64Array, total: number): void {
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  for (let index = 0; index < total; index += 1) {
    const weight = raw[index]!;
    if (weight < least) least = weight;
    if (weight > most) most = weight;
  }
  if (total === 0) range.take(0, 0);
  else range.take(least, most);
}

/** Adds what the scratch's raw weights come to once normalised, and counts them in the range. */
function addRelative(part: RelativePart, { ranking, batch, offset }: SievedPart, { raw, sums }: RankingScratch): void {
  const { range, weighedBy, index: bucketIndex } = part;
  const { buckets } = ranking;
  const multiplierOf = hostMultiplier(weighedBy, batch.facts);
  for (let index = 0; index < batch.count; index += 1) {
    const root = batch.roots[index]!;
    const weight = raw[offset + index]!;
    const multiplier = multiplierOf ? multiplierOf(root) : weighedBy.multiplier;
    buckets[ranking.bucketAt(root, bucketIndex)] = range.add(weight);
    sums[offset + index] = sums[offset + index]! + multiplier * range.normalise(weight);
  }
}

function addAbsolute(
  { weigher, weighedBy }: AbsolutePart,
  { batch, offset }: SievedPart,
  scratch: RankingScratch,
): void {
  const { raw, sums } = scratch;
  const multiplierOf = hostMultiplier(weighedBy, batch.facts);
  if (!multiplierOf) {
    if (weighedBy.multiplier !== 0) weigher.addTo(batch, sums, offset, weighedBy.multiplier);
    return;
  }
  raw.fill(0, offset, offset + batch.count);
  weigher.addTo(batch, raw, offset, 1);
  for (let index = 0; index < batch.count; index += 1) {
    const at = offset + index;
    sums[at] = sums[at]! + multiplierOf(batch.roots[index]!) * raw[at]!;
  }
}
