import type { CellRanking } from "./cell-ranking.ts";

/** A run of equally weighted hosts in one cell: its first rank, its length, and how many of its hosts were already returned. */
interface Run {
  readonly from: number;
  readonly length: number;
  readonly start: number;
  given: number;
}

export interface RankedHost {
  readonly ranking: CellRanking;
  /** Index of the ranking among those of the class. */
  readonly cell: number;
  readonly root: number;
  readonly weight: number;
}

/** The rankings of several cells, and the weight of the best host of each, or NaN for a ranking without hosts. */
export interface RankedCells {
  readonly rankings: readonly CellRanking[];
  readonly topWeights: Float64Array;
}

/**
 * Walks over the hosts of several rankings, best first. Among equal hosts it begins at a position that the seed decides, so that requests
 * do not all prefer the same one. The rankings must not change meanwhile.
 *
 * Cost: a comparison for each cell, and a logarithm of the number of hosts. Only rankings that have the next best host are read.
 */
export class RankedWalk {
  readonly #rankings: readonly CellRanking[];
  /** By cell: the weight of its next host, or NaN at its end. */
  readonly #weights: Float64Array;
  /** By cell: the run of its next host, from the time when that host is the best one. */
  readonly #runs: (Run | undefined)[] = [];
  readonly #seed: number;
  /** The cell that comes first among cells of equal weight; the others follow in their order. */
  readonly #first: number;

  constructor({ rankings, topWeights }: RankedCells, seed: number) {
    this.#rankings = rankings;
    this.#weights = topWeights.slice();
    this.#seed = seed;
    this.#first = rankings.length > 1 ? seed % rankings.length : 0;
  }

  /** The next best host, or null at the end. */
  next(): RankedHost | null {
    const cell = this.#bestCell();
    if (cell < 0) return null;
    const ranking = this.#rankings[cell]!;
    const weight = this.#weights[cell]!;
    const run = this.#runs[cell] ?? this.#runFrom(ranking, 0, weight);
    const root = ranking.sorted.at(run.from + ((run.start + run.given) % run.length));
    run.given += 1;
    this.#runs[cell] = run.given < run.length ? run : this.#nextRun(cell, run.from + run.length);
    return { ranking, cell, root, weight };
  }

  #bestCell(): number {
    const weights = this.#weights;
    const cells = weights.length;
    let best = -1;
    let most = Number.NaN;
    for (let step = 0, cell = this.#first; step < cells; step += 1, cell = cell + 1 === cells ? 0 : cell + 1) {
      const weight = weights[cell]!;
      if (best < 0 ? Number.isNaN(weight) : !(weight > most)) continue;
      best = cell;
      most = weight;
    }
    return best;
  }

  #nextRun(cell: number, from: number): Run | undefined {
    const ranking = this.#rankings[cell]!;
    const isEnd = from >= ranking.sorted.count;
    this.#weights[cell] = isEnd ? Number.NaN : ranking.weightOf(ranking.sorted.at(from));
    return isEnd ? undefined : this.#runFrom(ranking, from, this.#weights[cell]!);
  }

  #runFrom({ sorted }: CellRanking, from: number, weight: number): Run {
    const length = sorted.rankBelow(weight) - from;
    return { from, length, start: this.#seed % length, given: 0 };
  }
}
