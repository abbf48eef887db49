import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { HostFilter } from "../filters/host-filter.ts";
import type { BoundFilter } from "../filters/host-filters.ts";
import type { HostRequest } from "../host-request.ts";
import type { StageWatch } from "../stage-watch.ts";
import type { WeighedBy } from "../weighers/weigher.ts";
import { type CellHosts, CellRanking, keepAllowed } from "./cell-ranking.ts";
import { ClassWeights, type WeighedHosts, type WeightPart } from "./class-weights.ts";
import type { RankedCells } from "./ranked-walk.ts";
import type { RankingScratch } from "./ranking-scratch.ts";

/** The properties that decide which class a request belongs to. */
export interface ClassAsk {
  readonly hostRequest: HostRequest;
  readonly spec: ServerSpec | null;
  readonly filters: readonly HostFilter[];
  readonly weighers: readonly WeighedBy[];
  readonly watch?: StageWatch | undefined;
}

/** All hosts are weighed again only after at least one change per this many hosts, so that each change bears little of the cost. */
const HOSTS_PER_CHANGE = 2;
/** Weighing one host and moving it costs as much as weighing this many hosts when all are sorted at once. */
const WEIGHED_PER_MOVED = 4;

/** Approximate memory of a cell's compiled request and its tree search, measured with trees of nine providers. */
const SEARCH_BYTES = 8_192;

/** By a cell's index: the filters, bound to the cell as it is now, whose verdicts all requests of the class share. */
export type KindFilters = (cell: number) => readonly BoundFilter[];

/** The changed hosts of one cell, those among them that may fit, and the offsets of both in the scratch. */
interface ChangedHosts extends WeighedHosts {
  readonly changed: number;
  readonly changedOffset: number;
}

/**
 * A class of requests that all ask for the same, over the hosts of some cells: the ranked hosts that fit. It stays up to date with the
 * views by examining only hosts that changed.
 *
 * - made: all hosts are scanned and weighed (at first, when a view no longer knows what changed, when a weigher's version rises)
 * - weighed again: the hosts that fit are weighed again when the ranges of weights have moved, either all of them or those whose weights
 *   change
 * - kept up to date: from then on, each changed host is scanned, weighed and moved
 *
 * Cost: making takes some 100 ns a host, and more for hosts with several providers. Weighing again takes some 60 ns a fitting host, or a
 * few nanoseconds a host to find those that change. Keeping up takes some 400 ns a changed host.
 */
export class HostClass implements RankedCells {
  readonly rankings: readonly CellRanking[];
  readonly topWeights: Float64Array;
  /** By cell: number of ranked hosts, and the memory of the ranking in bytes. */
  readonly #counts: Float64Array;
  readonly #bytes: Float64Array;
  #count = 0;
  #memoryBytes = 0;
  readonly #weights: ClassWeights;
  #made = false;
  #weigherVersion = 0;
  #changedSinceWeighed = 0;
  #timesMade = 0;

  constructor(
    { hostRequest, spec, weighers }: Pick<ClassAsk, "hostRequest" | "spec" | "weighers">,
    cells: readonly CellHosts[],
  ) {
    this.#weights = new ClassWeights(weighers);
    this.rankings = cells.map((cell) => new CellRanking(cell, { hostRequest, spec }, this.#weights.relativeCount));
    this.topWeights = new Float64Array(cells.length).fill(Number.NaN);
    this.#counts = new Float64Array(cells.length);
    this.#bytes = new Float64Array(cells.length);
  }

  /** Number of hosts that fit as far as is known. */
  get count(): number {
    return this.#count;
  }

  /** How often all hosts were scanned. */
  get timesMade(): number {
    return this.#timesMade;
  }

  get memoryBytes(): number {
    return this.#memoryBytes;
  }

  /** Brings the class up to date with the views. Cost: a comparison for each cell, beside what the changed hosts cost. */
  refresh(scratch: RankingScratch, filtersOf: KindFilters): void {
    const isCurrent = this.#made && this.#weigherVersion === this.#weights.version;
    // An exception half-way leaves hosts that no range counts and changes that nothing examines again. The next call then makes the class
    // again.
    this.#made = false;
    if (!isCurrent || !this.#keepUp(scratch, filtersOf) || !this.#reweigh(scratch)) this.#makeAnew(scratch, filtersOf);
    this.#made = true;
  }

  /** Removes a host on which the request turned out not to fit, until that host changes. */
  leaveOut(cell: number, root: number, code: number): void {
    const ranking = this.rankings[cell]!;
    if (!ranking.isRanked(root)) return;
    this.#unrank(ranking, root);
    ranking.rejected.set(root, code);
    this.#note(cell);
  }

  /** The parts of a ranked host's weight in the order of the weighers, for those weighers that apply to it and count. */
  partsOf(ranking: CellRanking, root: number): WeightPart[] {
    return this.#weights.partsOf(ranking, root);
  }

  #makeAnew(scratch: RankingScratch, filtersOf: KindFilters): void {
    this.#timesMade += 1;
    this.#weigherVersion = this.#weights.version;
    scratch.enter("prefilter");
    scratch.reserve(this.rankings.reduce((sum, { cell }) => sum + cell.view.slots.rootCount, 0));
    let offset = 0;
    const all = this.rankings.map((ranking, cell) => {
      const passed = ranking.prefilterAll(scratch, offset);
      const part = { ranking, cell, batch: passed, offset };
      offset += passed.count;
      return part;
    });
    this.#weighAll(passing(all, scratch, filtersOf), scratch);
  }

  #weighAnew(scratch: RankingScratch): void {
    scratch.reserve(this.count);
    let offset = 0;
    const all = this.rankings.map((ranking, cell) => {
      const batch = ranking.takeRanked(scratch, offset);
      const part = { ranking, cell, batch, offset };
      offset += batch.count;
      return part;
    });
    this.#weighAll(all, scratch);
  }

  /** Weighs and ranks `all`, the hosts that fit, none of which is ranked. */
  #weighAll(all: readonly WeighedHosts[], scratch: RankingScratch): void {
    this.#changedSinceWeighed = 0;
    scratch.enter("weigh");
    this.#weights.weighAll(this.rankings, all, scratch);
    for (const { ranking, cell, batch, offset } of all) {
      const { count } = batch;
      ranking.rankAll(batch.roots.subarray(0, count), scratch.sums.subarray(offset, offset + count), scratch);
      this.#note(cell);
    }
  }

  /** Adjusts the weights to ranges that have moved, when it is time. Returns false when the class must be made again. */
  #reweigh(scratch: RankingScratch): boolean {
    if (this.#weights.broken) {
      this.#weighAnew(scratch);
      return true;
    }
    return this.#changedSinceWeighed * HOSTS_PER_CHANGE < this.count || this.#followRanges(scratch);
  }

  /** If the range of a weigher has moved, weighs the hosts again whose weights depend on it. Returns false when the class must be made again. */
  #followRanges(scratch: RankingScratch): boolean {
    const { outdated } = this.#weights;
    if (outdated === 0) return true;
    if (outdated * WEIGHED_PER_MOVED > this.count) {
      this.#weighAnew(scratch);
      return true;
    }
    this.#changedSinceWeighed = 0;
    scratch.enter("weigh");
    scratch.reserve(outdated);
    let offset = 0;
    const some = this.rankings.map((ranking, cell) => {
      const batch = ranking.pickRanked(scratch, offset, this.#weights.outdatedIn(ranking));
      const part = { ranking, cell, batch, offset };
      offset += batch.count;
      return part;
    });
    return this.#rankSome(some, scratch);
  }

  /**
   * Applies the changes of hosts. Returns false when a view no longer knows what changed, or when a weigher applies now that did not apply
   * before: the class must then be made again.
   */
  #keepUp(scratch: RankingScratch, filtersOf: KindFilters): boolean {
    const changed = this.#prefilterChanged(scratch);
    if (changed === null) return false;
    if (changed.length === 0) return true;
    const fitting = passing(changed, scratch, filtersOf);
    for (const hosts of fitting) this.#unrankUnfit(hosts, scratch);
    scratch.enter("weigh");
    return this.#rankSome(fitting, scratch);
  }

  /** Weighs hosts and ranks them, whether they are ranked already or new. Returns false when the class must be made again. */
  #rankSome(some: readonly WeighedHosts[], scratch: RankingScratch): boolean {
    if (!this.#weights.weighSome(some, scratch)) return false;
    const { sums } = scratch;
    for (const { ranking, cell, batch, offset } of some) {
      for (let index = 0; index < batch.count; index += 1) ranking.rank(batch.roots[index]!, sums[offset + index]!);
      this.#note(cell);
    }
    return true;
  }

  /** Scans the changed hosts of each cell. Returns null when a view no longer knows what changed. */
  #prefilterChanged(scratch: RankingScratch): ChangedHosts[] | null {
    scratch.enter("prefilter");
    const behind = this.#cellsBehind(scratch);
    const all: ChangedHosts[] = [];
    let changedOffset = 0;
    let offset = 0;
    for (const cell of behind) {
      const ranking = this.rankings[cell]!;
      const changed = ranking.takeChanged(scratch, changedOffset);
      if (changed === null) return null;
      this.#changedSinceWeighed += changed;
      const batch = ranking.prefilterChanged(scratch, { changed, changedOffset, index: all.length });
      all.push({ ranking, cell, batch, offset, changed, changedOffset });
      changedOffset += changed;
      offset += batch.count;
    }
    return all;
  }

  /** The cells whose views have changed. The scratch gets room for all their changed hosts. */
  #cellsBehind(scratch: RankingScratch): readonly number[] {
    const behind: number[] = [];
    let most = 0;
    for (let cell = 0; cell < this.rankings.length; cell += 1) {
      const ranking = this.rankings[cell]!;
      const changes = ranking.changesBehind;
      if (changes === 0) continue;
      behind.push(cell);
      most += Math.min(changes, ranking.cell.view.slots.capacity);
    }
    scratch.reserve(most);
    return behind;
  }

  /** Removes changed hosts that do not fit from the ranking. The fitting hosts are a part of the changed ones, in the same order. */
  #unrankUnfit({ ranking, batch, changed, changedOffset }: ChangedHosts, scratch: RankingScratch): void {
    let fitting = 0;
    for (let index = changedOffset; index < changedOffset + changed; index += 1) {
      const root = scratch.changed[index]!;
      if (fitting < batch.count && batch.roots[fitting] === root) fitting += 1;
      else if (ranking.isRanked(root)) this.#unrank(ranking, root);
    }
  }

  #unrank(ranking: CellRanking, root: number): void {
    ranking.unrank(root);
    this.#weights.drop(ranking, root);
  }

  /** Records what is read about a cell's ranking without reading the ranking. Call it after the ranking has changed. */
  #note(cell: number): void {
    const ranking = this.rankings[cell]!;
    const { sorted } = ranking;
    const bytes = ranking.memoryBytes + SEARCH_BYTES;
    this.topWeights[cell] = sorted.topWeight;
    this.#count += sorted.count - this.#counts[cell]!;
    this.#counts[cell] = sorted.count;
    this.#memoryBytes += bytes - this.#bytes[cell]!;
    this.#bytes[cell] = bytes;
  }
}

/** Keeps only the scanned hosts that pass the filters. */
function passing<Hosts extends WeighedHosts>(
  scanned: readonly Hosts[],
  scratch: RankingScratch,
  filtersOf: KindFilters,
): readonly Hosts[] {
  scratch.enter("filter");
  return scanned.map((hosts) => {
    const batch = keepAllowed(hosts.batch, filtersOf(hosts.cell));
    return batch === hosts.batch ? hosts : { ...hosts, batch };
  });
}
