import { assert } from "../../assert.ts";
import type { ProviderUuid } from "../../ledger/ids.ts";
import type { LedgerView } from "../../ledger/ledger-view.ts";
import type { AllocationItem } from "../../ledger/model.ts";
import { BoundRequest, CODE_GAVE_UP, CODE_NO_COMBINATION } from "../bound/bound-request.ts";
import type { RefusalCount } from "../refusal.ts";
import type { CandidateRequest } from "../request.ts";
import { WORK_PER_TREE } from "../search-budget.ts";
import { scanTrees } from "./scan-trees.ts";
import { type Assignment, assignmentOnRoot, searchTree, TreeSearch } from "./tree-search.ts";

/** One way to satisfy a request: an allocation candidate. */
export interface Candidate {
  readonly root: ProviderUuid;
  /** The host of the tree, or null when the tree belongs to none. */
  readonly host: string | null;
  /** Each pair of provider and class occurs once. */
  readonly items: readonly AllocationItem[];
  /** By group suffix: the providers that serve the group. Only the unnumbered group ("") may have several. */
  readonly mappings: ReadonlyMap<string, readonly ProviderUuid[]>;
}

export interface SearchOptions {
  /** Position in the view's list of trees at which to begin. Any whole number is valid. */
  readonly start?: number;
  /** Maximum number of steps for one tree; 20,000 by default. */
  readonly workPerTree?: number;
}

/** Trees that are scanned at a time: enough to amortise the passes, and few enough that a small limit reads little of a large cell. */
const BLOCK = 512;

/**
 * The allocation candidates of a view, found on demand. It yields the first candidate of every tree that has one, then a second of each,
 * and so on, so that no single tree uses up the limit.
 *
 * Iterate it at once: it refuses to go on after the view has changed. When it has ended without candidates, `refusals` says why.
 */
export class CandidateSearch implements Iterable<Candidate> {
  readonly #view: LedgerView;
  readonly #compiled: BoundRequest;
  readonly #start: number;
  readonly #workPerTree: number;
  readonly #version: number;
  #treesGivenUp = 0;

  constructor(view: LedgerView, request: CandidateRequest, options: SearchOptions = {}) {
    this.#view = view;
    this.#version = view.version;
    this.#compiled = new BoundRequest(view, request);
    const trees = Math.max(1, view.slots.rootCount);
    this.#start = (((options.start ?? 0) % trees) + trees) % trees;
    this.#workPerTree = options.workPerTree ?? WORK_PER_TREE;
  }

  /** Trees whose search ended at the bound of work. They may have more candidates than were found. */
  get treesGivenUp(): number {
    return this.#treesGivenUp;
  }

  /** Trees without a candidate among those searched so far, by reason. */
  refusals(): RefusalCount[] {
    return this.#compiled.refusals();
  }

  *[Symbol.iterator](): Generator<Candidate> {
    let left = this.#compiled.request.limit;
    if (left <= 0) return;
    const { slots } = this.#view;
    const onlyUnnumbered = this.#compiled.numbered.length === 0;
    const block = new Int32Array(Math.min(BLOCK, slots.rootCount));
    const found: number[] = [];
    for (const [from, end] of this.#blocks()) {
      this.#assertUnchanged();
      const count = scanTrees(this.#compiled, from, end, block);
      for (let index = 0; index < count; index += 1) {
        const root = block[index]!;
        // A flat tree has only one way, which needs no search. Flat clouds have no other trees.
        if (onlyUnnumbered && slots.descendants(root).length === 0) {
          yield candidateOf(this.#view, assignmentOnRoot(this.#compiled, root));
          this.#assertUnchanged();
        } else {
          const assignment = this.#firstOf(root);
          if (!assignment) continue;
          found.push(root);
          yield candidateOf(this.#view, assignment);
        }
        left -= 1;
        if (left === 0) return;
      }
    }
    let round: Iterable<TreeSearch> = this.#reopen(found);
    for (let given = found.length; given > 0; ) {
      const next: TreeSearch[] = [];
      for (const search of round) {
        const assignment = this.#next(search);
        if (!assignment) continue;
        next.push(search);
        yield candidateOf(this.#view, assignment);
        left -= 1;
        if (left === 0) return;
      }
      round = next;
      given = next.length;
    }
  }

  /** The list of trees in parts: from the start position to the end, then from the beginning to the start position. */
  #blocks(): [from: number, end: number][] {
    const total = this.#view.slots.rootCount;
    const blocks: [number, number][] = [];
    for (let from = this.#start; from < total; from += BLOCK) blocks.push([from, Math.min(total, from + BLOCK)]);
    for (let from = 0; from < this.#start; from += BLOCK) blocks.push([from, Math.min(this.#start, from + BLOCK)]);
    return blocks;
  }

  #assertUnchanged(): void {
    assert(this.#view.version === this.#version, "a candidate search continues only while its view has not changed");
  }

  #firstOf(root: number): Assignment | null {
    this.#assertUnchanged();
    const search = searchTree(this.#compiled, root, this.#workPerTree);
    const assignment = search.next();
    if (assignment) return assignment;
    if (search.gaveUp) this.#treesGivenUp += 1;
    this.#compiled.refuse(search.gaveUp ? CODE_GAVE_UP : CODE_NO_COMBINATION);
    return null;
  }

  /**
   * Begins separate searches for trees whose first way has been yielded. They are begun this late because most lists end before a second
   * way is requested, and an open search costs memory.
   */
  *#reopen(roots: readonly number[]): Generator<TreeSearch> {
    for (const root of roots) {
      const search = new TreeSearch(this.#compiled).begin(root, this.#workPerTree);
      search.next();
      yield search;
    }
  }

  #next(search: TreeSearch): Assignment | null {
    this.#assertUnchanged();
    const assignment = search.next();
    if (!assignment && search.gaveUp) this.#treesGivenUp += 1;
    return assignment;
  }
}

export function candidateOf(view: LedgerView, assignment: Assignment): Candidate {
  const { slots } = view;
  const mappings = new Map<string, ProviderUuid[]>();
  for (const { suffix, slots: serving } of assignment.mappings) {
    mappings.set(
      suffix,
      serving.map((slot) => slots.uuid(slot)),
    );
  }
  return {
    root: slots.uuid(assignment.root),
    host: view.hosts.nameOf(assignment.root) ?? null,
    items: assignment.items,
    mappings,
  };
}
