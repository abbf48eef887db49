import type { CellRanking } from "./cell-ranking.ts";

/** A run of equally weighted hosts in one cell: its first rank, its length, and how many of its hosts were already returned. */
interface Run {
  readonly ranking: CellRanking;
  from: number;
  length: number;
  start: number;
  given: number;
  weight: number;
}

export interface RankedHost {
  readonly ranking: CellRanking;
  readonly root: number;
  readonly weight: number;
}

/**
 * Walks over the hosts of several rankings, best first. Among equal hosts it begins at a position that the seed decides, so that requests
 * do not all prefer the same one. The rankings must not change meanwhile.
 *
 * Cost: a logarithm of the number of hosts.
 */
export class RankedWalk {
  readonly #runs: readonly Run[];
  readonly #seed: number;

  constructor(rankings: readonly CellRanking[], seed: number) {
    this.#seed = seed;
    const first = rankings.length > 1 ? seed % rankings.length : 0;
    const rotated = first === 0 ? rankings : [...rankings.slice(first), ...rankings.slice(0, first)];
    this.#runs = rotated.map((ranking) => this.#runFrom(ranking, 0));
  }

  /** The next best host, or null at the end. */
  next(): RankedHost | null {
    let best: Run | undefined;
    for (const run of this.#runs) if (run.length > 0 && (!best || run.weight > best.weight)) best = run;
    if (!best) return null;
    const { ranking, weight } = best;
    const root = ranking.sorted.at(best.from + ((best.start + best.given) % best.length));
    best.given += 1;
    if (best.given === best.length) Object.assign(best, this.#runFrom(ranking, best.from + best.length));
    return { ranking, root, weight };
  }

  #runFrom(ranking: CellRanking, from: number): Run {
    const { sorted } = ranking;
    if (from >= sorted.count) return { ranking, from, length: 0, start: 0, given: 0, weight: Number.NEGATIVE_INFINITY };
    const weight = ranking.weightOf(sorted.at(from));
    const length = sorted.rankBelow(weight) - from;
    return { ranking, from, length, start: this.#seed % length, given: 0, weight };
  }
}
