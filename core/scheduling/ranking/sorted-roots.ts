import { assert } from "../../assert.ts";
import { sortByWeight } from "./sort-by-weight.ts";

/** Most roots of one block: short enough to move within, long enough that blocks stay few. */
const BLOCK = 512;
const FILLED_AT_FIRST = 384;

interface Block {
  readonly roots: Int32Array;
  count: number;
}

/**
 * Roots in the order of their weights, the highest first, equal ones by their slot; kept in sorted blocks. Weights are the
 * owner's, by slot, and stay as they are while a root is in here.
 *
 * Chosen over a heap since equal weights are the rule (thousands of like hosts), and a place among them must be drawn at random,
 * which asks for ranks; and over buckets since the order is to be exact. Cost: some 100 ns to put in or take out at 100,000.
 */
export class SortedRoots {
  readonly #weights: () => Float64Array;
  #blocks: Block[] = [];
  #count = 0;
  /** Rank of each block's first root; valid while `#ranked`. */
  #starts = new Int32Array(0);
  #ranked = false;

  constructor(weights: () => Float64Array) {
    this.#weights = weights;
  }

  get count(): number {
    return this.#count;
  }

  get memoryBytes(): number {
    return this.#blocks.length * (BLOCK * 4 + 120);
  }

  /** Begins anew with these. Sorts `roots` in place. Cost: some 30 ns a root. */
  fill(roots: Int32Array): void {
    sortByWeight(roots, this.#weights());
    this.#blocks = [];
    for (let from = 0; from < roots.length; from += FILLED_AT_FIRST) {
      const part = roots.subarray(from, from + FILLED_AT_FIRST);
      const block = { roots: new Int32Array(BLOCK), count: part.length };
      block.roots.set(part);
      this.#blocks.push(block);
    }
    this.#count = roots.length;
    this.#ranked = false;
  }

  /** One that is not in here. */
  insert(root: number): void {
    this.#ranked = false;
    this.#count += 1;
    if (this.#blocks.length === 0) this.#blocks.push({ roots: new Int32Array(BLOCK), count: 0 });
    let index = Math.min(this.#blockOf(root), this.#blocks.length - 1);
    if (this.#blocks[index]!.count === BLOCK) {
      this.#split(index);
      index = Math.min(this.#blockOf(root), this.#blocks.length - 1);
    }
    const block = this.#blocks[index]!;
    const at = this.#placeIn(block, root);
    block.roots.copyWithin(at + 1, at, block.count);
    block.roots[at] = root;
    block.count += 1;
  }

  /** One that is in here. */
  remove(root: number): void {
    const index = this.#blockOf(root);
    const block = this.#blocks[index];
    const at = block ? this.#placeIn(block, root) : 0;
    assert(block?.roots[at] === root, "a root is taken out under the weight that it was put in with");
    this.#ranked = false;
    this.#count -= 1;
    block.roots.copyWithin(at, at + 1, block.count);
    block.count -= 1;
    if (block.count === 0) this.#blocks.splice(index, 1);
  }

  /** The root of a rank from 0 to `count`, exclusive. */
  at(rank: number): number {
    if (!this.#ranked) this.#rankBlocks();
    let low = 0;
    let high = this.#blocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#starts[middle]! <= rank) low = middle;
      else high = middle - 1;
    }
    return this.#blocks[low]!.roots[rank - this.#starts[low]!]!;
  }

  /** The first rank whose root weighs less than this; `count` when none does. */
  rankBelow(weight: number): number {
    if (!this.#ranked) this.#rankBlocks();
    const weights = this.#weights();
    let low = 0;
    let high = this.#blocks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const { roots, count } = this.#blocks[middle]!;
      if (weights[roots[count - 1]!]! >= weight) low = middle + 1;
      else high = middle;
    }
    if (low === this.#blocks.length) return this.#count;
    const { roots, count } = this.#blocks[low]!;
    let from = 0;
    let to = count;
    while (from < to) {
      const middle = (from + to) >> 1;
      if (weights[roots[middle]!]! >= weight) from = middle + 1;
      else to = middle;
    }
    return this.#starts[low]! + from;
  }

  #rankBlocks(): void {
    if (this.#starts.length < this.#blocks.length) this.#starts = new Int32Array(this.#blocks.length * 2);
    let start = 0;
    for (let index = 0; index < this.#blocks.length; index += 1) {
      this.#starts[index] = start;
      start += this.#blocks[index]!.count;
    }
    this.#ranked = true;
  }

  /** The first block whose last root does not come before this one. */
  #blockOf(root: number): number {
    const weights = this.#weights();
    const weight = weights[root]!;
    let low = 0;
    let high = this.#blocks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const { roots, count } = this.#blocks[middle]!;
      const last = roots[count - 1]!;
      const lastWeight = weights[last]!;
      if (lastWeight > weight || (lastWeight === weight && last < root)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Where in the block the root is, or belongs. */
  #placeIn({ roots, count }: Block, root: number): number {
    const weights = this.#weights();
    const weight = weights[root]!;
    let low = 0;
    let high = count;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = roots[middle]!;
      const otherWeight = weights[other]!;
      if (otherWeight > weight || (otherWeight === weight && other < root)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #split(index: number): void {
    const block = this.#blocks[index]!;
    const half = block.count >> 1;
    const second = { roots: new Int32Array(BLOCK), count: block.count - half };
    second.roots.set(block.roots.subarray(half, block.count));
    block.count = half;
    this.#blocks.splice(index + 1, 0, second);
  }
}
