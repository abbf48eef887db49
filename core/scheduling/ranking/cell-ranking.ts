import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { scanRoots } from "../../candidates/best/scan-trees.ts";
import { ANY_ROOT, type BoundRequest } from "../../candidates/bound/bound-request.ts";
import { KeptRequest } from "../../candidates/bound/kept-request.ts";
import type { LedgerView } from "../../ledger/ledger-view.ts";
import { type BoundFilter, refusedBy } from "../filters/host-filters.ts";
import type { CellFacts } from "../host-facts.ts";
import { type HostRequest, searchOf } from "../host-request.ts";
import type { HostBatch } from "../weighers/weigher.ts";
import type { RankingScratch } from "./ranking-scratch.ts";
import { RootPlaces } from "./root-places.ts";
import { SortedRoots } from "./sorted-roots.ts";

/** A cell that a server may go to. */
export interface CellHosts {
  readonly name: string;
  readonly view: LedgerView;
  /** Facts for the host filters. Without them no filter applies. */
  readonly facts?: CellFacts | undefined;
}

/** Factor by which arrays grow when more hosts come. */
const GROWTH = 1.125;

/** By root: the refusal's code of a tree that passed the scan but did not fit after all. */
type Rejected = Map<number, number>;

/**
 * The hosts of one cell that may serve a class of requests, in the order of their weights. The class computes the weights; this object
 * keeps track of which hosts are ranked and of changes in the view.
 */
export class CellRanking {
  readonly cell: CellHosts;
  readonly sorted: SortedRoots;
  /** By a root's place and weigher (`bucketsOf`): the bucket of the weigher's range in which the host is counted. */
  buckets = new Uint8Array(0);
  /** By a root's place: its weight, or NaN when it is not ranked. */
  #weights = new Float64Array(0);
  #places = new RootPlaces();
  readonly #weighers: number;
  readonly rejected: Rejected = new Map();
  readonly #spec: ServerSpec | null;
  readonly #kept: KeptRequest;
  #mark = -1;

  /** `spec` is that of any request of the class, or null when only the host request is known. */
  constructor(
    cell: CellHosts,
    { hostRequest, spec }: { readonly hostRequest: HostRequest; readonly spec: ServerSpec | null },
    weighers: number,
  ) {
    this.cell = cell;
    this.#spec = spec;
    this.#kept = new KeptRequest(cell.view, searchOf(hostRequest));
    this.#weighers = weighers;
    this.sorted = new SortedRoots();
  }

  /** The compiled request, valid until the view changes. */
  get request(): BoundRequest {
    return this.#kept.current();
  }

  get memoryBytes(): number {
    return this.#weights.length * 8 + this.buckets.length + this.sorted.memoryBytes;
  }

  /** Number of changes of the view that the ranking has not applied yet. */
  get changesBehind(): number {
    return this.cell.view.changes.position - this.#mark;
  }

  isRanked(root: number): boolean {
    return !Number.isNaN(this.weightOf(root));
  }

  /** The weight of a root, or NaN when it is not ranked. */
  weightOf(root: number): number {
    const place = this.#places.find(root);
    return place >= 0 && place < this.#weights.length ? this.#weights[place]! : Number.NaN;
  }

  /** Index of the first bucket of a root that passed the scan. It has one bucket for each weigher. */
  bucketsOf(root: number): number {
    return this.#places.find(root) * this.#weighers;
  }

  /** Ranks a host that passed the scan by its weight, or moves it to its new rank. */
  rank(root: number, weight: number): void {
    const place = this.#places.find(root);
    const before = this.#weights[place]!;
    if (Number.isNaN(before)) this.sorted.insert(root, weight);
    else if (before !== weight) this.sorted.move(root, before, weight);
    this.#weights[place] = weight;
  }

  /** Ranks many hosts at once. They passed the scan and none is ranked yet; `weights` is parallel to `roots`. */
  rankAll(roots: Int32Array, weights: Float64Array, scratch: RankingScratch): void {
    const bySlot = scratch.bySlot(this.cell.view.slots.capacity);
    for (let index = 0; index < roots.length; index += 1) {
      const root = roots[index]!;
      bySlot[root] = weights[index]!;
      this.#weights[this.#places.find(root)] = weights[index]!;
    }
    this.sorted.fill(roots, bySlot);
  }

  /** Removes a ranked host from the ranking. */
  unrank(root: number): void {
    const place = this.#places.find(root);
    this.sorted.remove(root, this.#weights[place]!);
    this.#weights[place] = Number.NaN;
  }

  /**
   * Writes all hosts that pass the scan to `scratch.roots` from `offset` on, and follows changes from here on. Afterwards nothing is
   * ranked.
   */
  prefilterAll(scratch: RankingScratch, offset: number): HostBatch {
    const { slots, changes } = this.cell.view;
    this.#mark = changes.mark();
    this.rejected.clear();
    this.#places = scratch.placesOf(slots);
    this.#places.take(slots.roots, slots.rootCount, slots.capacity);
    this.#weights = new Float64Array(this.#places.count).fill(Number.NaN);
    this.buckets = new Uint8Array(this.#places.count * this.#weighers);
    const out = scratch.roots.subarray(offset);
    const request = this.#kept.current();
    const named = namedRoots(request);
    const count = named
      ? scanRoots(request, named, { from: 0, to: named.length }, out)
      : scanRoots(request, slots.roots, { from: 0, to: slots.rootCount }, out);
    return this.#batch(request, out, count);
  }

  /** Moves all ranked hosts to `scratch.roots` from `offset` on. Afterwards nothing is ranked. */
  takeRanked(scratch: RankingScratch, offset: number): HostBatch {
    const out = scratch.roots.subarray(offset);
    const count = this.sorted.take(out);
    this.#weights.fill(Number.NaN);
    return this.#batch(this.#kept.current(), out, count);
  }

  /** Copies selected ranked hosts to `scratch.roots` from `offset` on. They stay ranked. Cost: one test for every host. */
  pickRanked(scratch: RankingScratch, offset: number, picks: (root: number) => boolean): HostBatch {
    const { roots, rootCount } = this.cell.view.slots;
    const out = scratch.roots.subarray(offset);
    let count = 0;
    for (let index = 0; index < rootCount; index += 1) {
      const root = roots[index]!;
      if (!this.isRanked(root) || !picks(root)) continue;
      out[count] = root;
      count += 1;
    }
    return this.#batch(this.#kept.current(), out, count);
  }

  /**
   * Writes the roots that changed since the last call, each once, to `scratch.changed` from `offset` on. Returns their number, or null when
   * the view no longer knows what changed.
   */
  takeChanged(scratch: RankingScratch, offset: number): number | null {
    const { changes, slots } = this.cell.view;
    scratch.beginDistinct(slots.capacity);
    const { changed } = scratch;
    let end = offset;
    const told = changes.since(this.#mark, (root) => {
      if (!scratch.isNew(root)) return;
      changed[end] = root;
      end += 1;
    });
    this.#mark = changes.mark();
    return told ? end - offset : null;
  }

  /** The changed roots that pass the scan, in their order, in the scratch's batch of this index. The ranking does not change. */
  prefilterChanged(
    scratch: RankingScratch,
    where: { readonly changed: number; readonly changedOffset: number; readonly index: number },
  ): HostBatch {
    const { slots } = this.cell.view;
    const { changed } = scratch;
    const out = scratch.batch(where.index, where.changed);
    let known = 0;
    for (let index = where.changedOffset; index < where.changedOffset + where.changed; index += 1) {
      const root = changed[index]!;
      if (this.rejected.size > 0) this.rejected.delete(root);
      if (!slots.isKnown(root) || slots.root[root] !== root) continue;
      out[known] = root;
      known += 1;
    }
    const request = this.#kept.current();
    const count = scanRoots(request, out, { from: 0, to: known }, out);
    this.#places.take(out, count, slots.capacity);
    if (this.#weights.length < this.#places.count) this.#grow(this.#places.count);
    return this.#batch(request, out, count);
  }

  /** A batch of this host alone. */
  batchOf(root: number): HostBatch {
    return this.#batch(this.#kept.current(), Int32Array.of(root), 1);
  }

  #batch(request: BoundRequest, roots: Int32Array, count: number): HostBatch {
    const { name, facts } = this.cell;
    return { cell: name, request, facts, spec: this.#spec, roots, count };
  }

  #grow(places: number): void {
    const withSpare = Math.ceil(places * GROWTH);
    const weights = new Float64Array(withSpare).fill(Number.NaN);
    weights.set(this.#weights);
    this.#weights = weights;
    const buckets = new Uint8Array(withSpare * this.#weighers);
    buckets.set(this.buckets);
    this.buckets = buckets;
  }
}

/** The only possible roots when the request names trees or hosts, or null when any root is possible. */
function namedRoots({ view, onlyRoots, unnumbered }: BoundRequest): Int32Array | null {
  const { slots } = view;
  const treeRoot = unnumbered?.treeRoot ?? ANY_ROOT;
  if (onlyRoots === null && treeRoot === ANY_ROOT) return null;
  const named = onlyRoots ?? [treeRoot];
  return Int32Array.from(named).filter((slot) => slot >= 0 && slots.isKnown(slot) && slots.root[slot] === slot);
}

/** Keeps in the batch only the hosts that pass the filters. A host without facts passes, since only the ledger knows it. */
export function keepAllowed(batch: HostBatch, filters: readonly BoundFilter[]): HostBatch {
  const { facts, roots } = batch;
  if (!facts || filters.length === 0) return batch;
  let count = 0;
  for (let index = 0; index < batch.count; index += 1) {
    const root = roots[index]!;
    const host = facts.at(root);
    if (host && refusedBy(filters, host) !== null) continue;
    roots[count] = root;
    count += 1;
  }
  return count === batch.count ? batch : { ...batch, count };
}
