import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { HostFilter } from "../filters/host-filter.ts";
import type { BoundFilter } from "../filters/host-filters.ts";
import type { PlacementQuery } from "../placement-query.ts";
import type { StageWatch } from "../stage-watch.ts";
import type { WeighedBy } from "../weighers/weigher.ts";
import { type CellHosts, CellRanking, keepAllowed } from "./cell-ranking.ts";
import { ClassWeights, type WeighedHosts, type WeightPart } from "./class-weights.ts";
import type { RankingScratch } from "./ranking-scratch.ts";

/** What says which class a request belongs to. */
export interface ClassAsk {
  readonly query: PlacementQuery;
  readonly spec: ServerSpec | null;
  readonly filters: readonly HostFilter[];
  readonly weighers: readonly WeighedBy[];
  readonly watch?: StageWatch | undefined;
}

/** Hosts are weighed once more after at least one change for so many hosts, so that it costs each change little. */
const HOSTS_PER_CHANGE = 2;
/** Weighing one host and moving it costs as much as weighing so many where all are put in order anew. */
const WEIGHED_PER_MOVED = 4;

/** What a cell's compiled request and its tree search keep, about; measured with trees of nine providers. */
const SEARCH_BYTES = 8_192;

/** The hosts of one cell that changed, those of them that may fit, and where both begin in the scratch. */
interface ChangedHosts extends WeighedHosts {
  readonly changed: number;
  readonly changedOffset: number;
}

/**
 * A class of requests - all that ask the same - over the hosts of some cells: who fits, ranked, kept up to date with the views by
 * looking again at those hosts only that changed.
 *
 * - made anew: all hosts are sieved and weighed (at first, when a view cannot tell what changed, when a weigher's own
 *   mind changed)
 * - weighed anew: the hosts that fit are weighed once more, all of them or those whose weights change (when the ranges of weights
 *   have moved)
 * - kept up: from then on; each changed host is sieved, weighed and moved
 *
 * Cost: made anew some 100 ns a host, more for hosts of several providers; weighed anew some 60 ns a host that fits, or some nanoseconds a
 * host to find those that change; kept up some 400 ns a changed host.
 */
export class HostClass {
  readonly rankings: readonly CellRanking[];
  readonly #weights: ClassWeights;
  #made = false;
  #weigherVersion = 0;
  #changedSinceWeighed = 0;
  #timesMade = 0;

  constructor({ query, spec, weighers }: Pick<ClassAsk, "query" | "spec" | "weighers">, cells: readonly CellHosts[]) {
    this.#weights = new ClassWeights(weighers);
    this.rankings = cells.map((cell) => new CellRanking(cell, { query, spec }, this.#weights.relativeCount));
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
    return this.rankings.reduce((sum, ranking) => sum + ranking.memoryBytes + SEARCH_BYTES, 0);
  }

  /** Catches up with the views. `filters`: by cell, those whose verdict all requests of the class share, as bound now. */
  refresh(scratch: RankingScratch, filters: readonly (readonly BoundFilter[])[]): void {
    const isCurrent = this.#made && this.#weigherVersion === this.#weights.version;
    // Who throws half-way leaves hosts that are counted nowhere and changes that nobody looks at again: then all is made anew.
    this.#made = false;
    if (!isCurrent || !this.#keepUp(scratch, filters) || !this.#reweigh(scratch)) this.#makeAnew(scratch, filters);
    this.#made = true;
  }

  /** The request does not fit on this host although it seemed so: out, until the host changes. */
  leaveOut(ranking: CellRanking, root: number, code: number): void {
    if (!ranking.isRanked(root)) return;
    this.#unrank(ranking, root);
    ranking.misfits.set(root, code);
  }

  /** What the weight of a ranked host is made of, in the order of the weighers: those that have something to say of it, and count. */
  partsOf(ranking: CellRanking, root: number): WeightPart[] {
    return this.#weights.partsOf(ranking, root);
  }

  #makeAnew(scratch: RankingScratch, filters: readonly (readonly BoundFilter[])[]): void {
    this.#timesMade += 1;
    this.#weigherVersion = this.#weights.version;
    scratch.enter("sieve");
    scratch.reserve(this.rankings.reduce((sum, { cell }) => sum + cell.view.slots.rootCount, 0));
    let offset = 0;
    const all = this.rankings.map((ranking, cell) => {
      const sieved = ranking.sieveAll(scratch, offset);
      const part = { ranking, cell, batch: sieved, offset };
      offset += sieved.count;
      return part;
    });
    this.#weighAll(passing(all, scratch, filters), scratch);
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

  /** `all`: all hosts that fit, of which none is ranked. */
  #weighAll(all: readonly WeighedHosts[], scratch: RankingScratch): void {
    this.#changedSinceWeighed = 0;
    scratch.enter("weigh");
    this.#weights.weighAll(this.rankings, all, scratch);
    for (const { ranking, batch, offset } of all) {
      const { count } = batch;
      ranking.rankAll(batch.roots.subarray(0, count), scratch.sums.subarray(offset, offset + count), scratch);
    }
  }

  /** Lets the weights follow ranges that have moved, if it is time. False: as of `#keepUp`. */
  #reweigh(scratch: RankingScratch): boolean {
    if (this.#weights.broken) {
      this.#weighAnew(scratch);
      return true;
    }
    return this.#changedSinceWeighed * HOSTS_PER_CHANGE < this.count || this.#followRanges(scratch);
  }

  /** Weighs once more those whose weights change with the ranges that have moved, if any has. False: as of `#keepUp`. */
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

  /** Of the hosts that changed. False: it cannot be kept up any more, or a weigher that had nothing to say speaks up now. */
  #keepUp(scratch: RankingScratch, filters: readonly (readonly BoundFilter[])[]): boolean {
    const changed = this.#sieveChanged(scratch);
    if (changed === null) return false;
    if (changed.length === 0) return true;
    const fitting = passing(changed, scratch, filters);
    for (const hosts of fitting) this.#unrankUnfit(hosts, scratch);
    scratch.enter("weigh");
    return this.#rankSome(fitting, scratch);
  }

  /** Weighs hosts and puts them, ranked ones and new ones, into their places. False: as of `#keepUp`. */
  #rankSome(some: readonly WeighedHosts[], scratch: RankingScratch): boolean {
    if (!this.#weights.weighSome(some, scratch)) return false;
    const { sums } = scratch;
    for (const { ranking, batch, offset } of some) {
      for (let index = 0; index < batch.count; index += 1) ranking.rank(batch.roots[index]!, sums[offset + index]!);
    }
    return true;
  }

  /** Null: there is no telling what changed. */
  #sieveChanged(scratch: RankingScratch): ChangedHosts[] | null {
    scratch.enter("sieve");
    scratch.reserve(this.rankings.reduce((sum, { cell }) => sum + cell.view.slots.capacity, 0));
    const all: ChangedHosts[] = [];
    let changedOffset = 0;
    let offset = 0;
    for (const [cell, ranking] of this.rankings.entries()) {
      const changed = ranking.takeChanged(scratch, changedOffset);
      if (changed === null) return null;
      if (changed === 0) continue;
      this.#changedSinceWeighed += changed;
      const batch = ranking.sieveChanged(scratch, { changed, changedOffset, offset });
      all.push({ ranking, cell, batch, offset, changed, changedOffset });
      changedOffset += changed;
      offset += batch.count;
    }
    return all;
  }

  /** Changed hosts that do not fit are no longer ranked. The fitting ones are a part of the changed ones, in the same order. */
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
}

/** Those of sieved hosts that the filters let through, in their place. */
function passing<Hosts extends WeighedHosts>(
  sieved: readonly Hosts[],
  scratch: RankingScratch,
  filters: readonly (readonly BoundFilter[])[],
): readonly Hosts[] {
  if (!filters.some(({ length }) => length > 0)) return sieved;
  scratch.enter("filter");
  return sieved.map((hosts) => ({ ...hosts, batch: keepAllowed(hosts.batch, filters[hosts.cell]!) }));
}
