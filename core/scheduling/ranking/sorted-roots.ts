import { assert } from "../../assert.ts";
import { sortByWeight } from "./sort-by-weight.ts";

/** Maximum number of roots in one block: few enough to shift cheaply, and enough to keep the number of blocks small. */
const BLOCK = 512;
const FILLED_AT_FIRST = 384;

interface Block {
  readonly roots: Int32Array;
  /** Weights parallel to the roots. A search then reads adjacent memory instead of one place for each root. */
  readonly weights: Float64Array;
  count: number;
}

const newBlock = (): Block => ({ roots: new Int32Array(BLOCK), weights: new Float64Array(BLOCK), count: 0 });

/**
 * Roots in descending order of their weights, equal ones by their slot, kept in sorted blocks. The caller keeps the weight under which each
 * root was inserted.
 *
 * A heap would not do, because equal weights are common (thousands of equal hosts) and drawing one of them at random requires ranks. Buckets
 * would not do, because the order must be exact. Cost: some 100 ns to insert or remove one among 100,000.
 */
export class SortedRoots {
  #blocks: Block[] = [];
  /** The last root of each block and its weight, kept together for fast searches. */
  #lastRoots = new Int32Array(0);
  #lastWeights = new Float64Array(0);
  #count = 0;
  /** Rank of each block's first root. Valid while `#ranked`. */
  #starts = new Int32Array(0);
  #ranked = false;

  get count(): number {
    return this.#count;
  }

  /** The highest weight, or NaN when there are no roots. */
  get topWeight(): number {
    return this.#count > 0 ? this.#blocks[0]!.weights[0]! : Number.NaN;
  }

  get memoryBytes(): number {
    return this.#blocks.length * (BLOCK * 12 + 240);
  }

  /** Replaces the contents with these roots, whose weights are indexed by slot. It sorts `roots` in place. Cost: some 30 ns a root. */
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

  /** Inserts a root, which must not be present. */
  insert(root: number, weight: number): void {
    if (this.#blocks.length === 0) {
      this.#blocks.push(newBlock());
      this.#noteAll();
    }
    this.#insertAt(this.#blockOf(root, weight), root, weight);
  }

  /** Removes a root, which must be present under this weight. */
  remove(root: number, weight: number): void {
    this.#removeAt(this.#blockOf(root, weight), root, weight);
  }

  /** Inserts a root at its block, or behind the last block. */
  #insertAt(found: number, root: number, weight: number): void {
    let index = Math.min(found, this.#blocks.length - 1);
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

  #removeAt(index: number, root: number, weight: number): void {
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

  /** Changes the weight of a root that is present. */
  move(root: number, before: number, weight: number): void {
    const index = this.#blockOf(root, before);
    const block = this.#blocks[index];
    const target = this.#blockOf(root, weight);
    if (!block || index !== target) {
      const blocks = this.#blocks.length;
      this.#removeAt(index, root, before);
      // Removing a root that is not the only one of its block leaves every other root in its block.
      if (this.#blocks.length === blocks) this.#insertAt(target, root, weight);
      else this.insert(root, weight);
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

  /** Moves all roots to `out` in their order, and returns their number. */
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

  /** The root at a rank from 0 to `count`, exclusive. */
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

  /** The first rank whose root weighs less than this, or `count` when there is none. */
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

  /** Updates the derived arrays after the list of blocks has changed. */
  #noteAll(): void {
    this.#ranked = false;
    if (this.#lastRoots.length < this.#blocks.length) {
      this.#lastRoots = new Int32Array(this.#blocks.length * 2);
      this.#lastWeights = new Float64Array(this.#blocks.length * 2);
    }
    for (let index = 0; index < this.#blocks.length; index += 1) this.#note(index);
  }

  /** Index of the first block whose last root does not come before this one. */
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

/** Frees the place `to` of a block by shifting the entries between it and `from` by one. The entry at `from` is overwritten. */
function shift({ roots, weights }: Block, from: number, to: number): void {
  if (to > from) {
    roots.copyWithin(from, from + 1, to + 1);
    weights.copyWithin(from, from + 1, to + 1);
  } else if (to < from) {
    roots.copyWithin(to + 1, to, from);
    weights.copyWithin(to + 1, to, from);
  }
}

/** The place of the root in the block, or the place where it belongs. */
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
