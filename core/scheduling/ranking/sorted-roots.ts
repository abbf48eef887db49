import { assert } from "../../assert.ts";
import { sortByWeight } from "./sort-by-weight.ts";

/** Most roots of one block: short enough to move within, long enough that blocks stay few. */
const BLOCK = 512;
const FILLED_AT_FIRST = 384;

interface Block {
  readonly roots: Int32Array;
  /** Of the roots, beside them: a search then reads one place of memory, not one a root. */
  readonly weights: Float64Array;
  count: number;
}

const newBlock = (): Block => ({ roots: new Int32Array(BLOCK), weights: new Float64Array(BLOCK), count: 0 });

/**
 * Roots in the order of their weights, the highest first, equal ones by their slot; kept in sorted blocks. The owner knows the weight
 * under which each root is in here.
 *
 * Chosen over a heap since equal weights are the rule (thousands of like hosts), and a place among them must be drawn at random,
 * which asks for ranks; and over buckets since the order is to be exact. Cost: some 100 ns to put in or take out at 100,000.
 */
export class SortedRoots {
  #blocks: Block[] = [];
  /** The last root of each block and its weight, for the same reason. */
  #lastRoots = new Int32Array(0);
  #lastWeights = new Float64Array(0);
  #count = 0;
  /** Rank of each block's first root; valid while `#ranked`. */
  #starts = new Int32Array(0);
  #ranked = false;

  get count(): number {
    return this.#count;
  }

  get memoryBytes(): number {
    return this.#blocks.length * (BLOCK * 12 + 240);
  }

  /** Begins anew with these, whose weights are by slot. Sorts `roots` in place. Cost: some 30 ns a root. */
  fill(roots: Int32Array, weights: Float64Array): void {
    sortByWeight(roots, weights);
    this.#blocks = [];
    for (let from = 0; from < roots.length; from += FILLED_AT_FIRST) {
      const block = newBlock();
      block.count = Math.min(FILLED_AT_FIRST, roots.length - from);
      for (let index = 0; index < block.count; index += 1) {
        const root = roots[from + index]!;
        block.roots[index] = root;
        block.weights[index] = weights[root]!;
      }
      this.#blocks.push(block);
    }
    this.#count = roots.length;
    this.#noteAll();
  }

  /** One that is not in here. */
  insert(root: number, weight: number): void {
    if (this.#blocks.length === 0) {
      this.#blocks.push(newBlock());
      this.#noteAll();
    }
    let index = Math.min(this.#blockOf(root, weight), this.#blocks.length - 1);
    if (this.#blocks[index]!.count === BLOCK) {
      this.#split(index);
      index = Math.min(this.#blockOf(root, weight), this.#blocks.length - 1);
    }
    const block = this.#blocks[index]!;
    const at = placeIn(block, root, weight);
    block.roots.copyWithin(at + 1, at, block.count);
    block.weights.copyWithin(at + 1, at, block.count);
    block.roots[at] = root;
    block.weights[at] = weight;
    block.count += 1;
    this.#count += 1;
    this.#note(index);
    this.#ranked = false;
  }

  /** One that is in here, under this weight. */
  remove(root: number, weight: number): void {
    const index = this.#blockOf(root, weight);
    const block = this.#blocks[index];
    const at = block ? placeIn(block, root, weight) : 0;
    assert(block?.roots[at] === root, "a root is taken out under the weight that it was put in with");
    block.roots.copyWithin(at, at + 1, block.count);
    block.weights.copyWithin(at, at + 1, block.count);
    block.count -= 1;
    this.#count -= 1;
    this.#ranked = false;
    if (block.count > 0) {
      this.#note(index);
      return;
    }
    this.#blocks.splice(index, 1);
    this.#noteAll();
  }

  /** One that is in here gets another weight than it had before. */
  move(root: number, before: number, weight: number): void {
    const index = this.#blockOf(root, before);
    const block = this.#blocks[index];
    if (!block || index !== this.#blockOf(root, weight)) {
      this.remove(root, before);
      this.insert(root, weight);
      return;
    }
    const from = placeIn(block, root, before);
    assert(block.roots[from] === root, "a root is moved from the weight that it was put in with");
    const to = placeIn(block, root, weight);
    const at = to > from ? to - 1 : to;
    shift(block, from, at);
    block.roots[at] = root;
    block.weights[at] = weight;
    this.#note(index);
    this.#ranked = false;
  }

  /** Takes all out, into `out`, in their order; returns how many. */
  take(out: Int32Array): number {
    const count = this.#count;
    let at = 0;
    for (const block of this.#blocks) {
      out.set(block.roots.subarray(0, block.count), at);
      at += block.count;
    }
    this.#blocks = [];
    this.#count = 0;
    this.#noteAll();
    return count;
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
    let low = 0;
    let high = this.#blocks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#lastWeights[middle]! >= weight) low = middle + 1;
      else high = middle;
    }
    const block = this.#blocks[low];
    if (!block) return this.#count;
    let from = 0;
    let to = block.count;
    while (from < to) {
      const middle = (from + to) >> 1;
      if (block.weights[middle]! >= weight) from = middle + 1;
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

  #note(index: number): void {
    const { roots, weights, count } = this.#blocks[index]!;
    this.#lastRoots[index] = count > 0 ? roots[count - 1]! : 0;
    this.#lastWeights[index] = count > 0 ? weights[count - 1]! : Number.NEGATIVE_INFINITY;
  }

  /** The list of blocks is another one. */
  #noteAll(): void {
    this.#ranked = false;
    if (this.#lastRoots.length < this.#blocks.length) {
      this.#lastRoots = new Int32Array(this.#blocks.length * 2);
      this.#lastWeights = new Float64Array(this.#blocks.length * 2);
    }
    for (let index = 0; index < this.#blocks.length; index += 1) this.#note(index);
  }

  /** The first block whose last root does not come before this one. */
  #blockOf(root: number, weight: number): number {
    let low = 0;
    let high = this.#blocks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const lastWeight = this.#lastWeights[middle]!;
      if (lastWeight > weight || (lastWeight === weight && this.#lastRoots[middle]! < root)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #split(index: number): void {
    const block = this.#blocks[index]!;
    const half = block.count >> 1;
    const second = newBlock();
    second.count = block.count - half;
    second.roots.set(block.roots.subarray(half, block.count));
    second.weights.set(block.weights.subarray(half, block.count));
    block.count = half;
    this.#blocks.splice(index + 1, 0, second);
    this.#noteAll();
  }
}

/** Frees the place `to` of a block by moving those from it up to the place `from` by one; what was at `from` is overwritten. */
function shift({ roots, weights }: Block, from: number, to: number): void {
  if (to > from) {
    roots.copyWithin(from, from + 1, to + 1);
    weights.copyWithin(from, from + 1, to + 1);
  } else if (to < from) {
    roots.copyWithin(to + 1, to, from);
    weights.copyWithin(to + 1, to, from);
  }
}

/** Where in the block the root is, or belongs. */
function placeIn({ roots, weights, count }: Block, root: number, weight: number): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    const other = weights[middle]!;
    if (other > weight || (other === weight && roots[middle]! < root)) low = middle + 1;
    else high = middle;
  }
  return low;
}
