interface FlowProblem {
  /** By group: members to place. */
  readonly todo: readonly number[];
  /** By bin: number of free providers. */
  readonly left: Int32Array;
  readonly binCount: number;
  /** By group and bin: 1 if a provider of the bin could serve the group. Rows are groups. */
  readonly fits: Uint8Array;
  /** Groups before this one are placed. This one may use the bins from `firstBin` on, and later groups may use any bin. */
  readonly group: number;
  readonly firstBin: number;
}

/** Decides whether all members can be matched to free providers, moving earlier matches where necessary. */
export class BinFlow {
  /** By bin: number of providers that are still free. */
  #left = new Int32Array(0);
  /** By group and bin: number of matched members. Rows are groups. */
  #flow = new Int32Array(0);
  /** By bin: the round in which it was last visited. The number of rounds only grows and may exceed 32 bits. */
  #visited = new Float64Array(0);
  #round = 0;

  finds(problem: FlowProblem): boolean {
    const { todo, group, binCount } = problem;
    if (this.#left.length < binCount || this.#flow.length < todo.length * binCount) {
      this.#left = new Int32Array(binCount);
      this.#flow = new Int32Array(todo.length * binCount);
      this.#visited = new Float64Array(binCount);
    }
    for (let bin = 0; bin < binCount; bin += 1) this.#left[bin] = problem.left[bin]!;
    this.#flow.fill(0, 0, todo.length * binCount);
    for (let from = group; from < todo.length; from += 1) {
      for (let times = 0; times < todo[from]!; times += 1) {
        this.#round += 1;
        if (!this.#augment(problem, from)) return false;
      }
    }
    return true;
  }

  /** Finds a provider for one member of the group `from`, moving other members if necessary. */
  #augment(problem: FlowProblem, from: number): boolean {
    const { todo, fits, group, firstBin, binCount } = problem;
    const left = this.#left;
    const flow = this.#flow;
    const visited = this.#visited;
    for (let bin = from === group ? firstBin : 0; bin < binCount; bin += 1) {
      if (visited[bin] === this.#round || fits[from * binCount + bin] === 0) continue;
      visited[bin] = this.#round;
      if (left[bin]! > 0) {
        left[bin] = left[bin]! - 1;
        flow[from * binCount + bin] = flow[from * binCount + bin]! + 1;
        return true;
      }
      for (let other = group; other < todo.length; other += 1) {
        if (flow[other * binCount + bin] === 0 || other === from || !this.#augment(problem, other)) continue;
        flow[other * binCount + bin] = flow[other * binCount + bin]! - 1;
        flow[from * binCount + bin] = flow[from * binCount + bin]! + 1;
        return true;
      }
    }
    return false;
  }
}
