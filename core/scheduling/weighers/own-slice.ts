import type { LedgerView } from "../../ledger/view.ts";
import { seedOf } from "../seeded-random.ts";
import type { AbsoluteWeigher, HostBatch } from "./weigher.ts";

const UNKNOWN = 0;
const MINE = 1;
const OTHERS = 2;

/**
 * Prefers the hosts of the scheduler's own slice, so that several schedulers choose different hosts; another's host is taken
 * when it is better by more than the multiplier, or when the slice has none.
 *
 * A host belongs to the live scheduler with the highest hash of (scheduler, host): rendezvous hashing, so that a scheduler
 * that comes or goes moves no more hosts than its own share.
 */
export class OwnSlice implements AbsoluteWeigher {
  readonly name = "own_slice";
  readonly kind = "absolute";
  readonly #schedulerId: string;
  #members: readonly string[] = [];
  #version = 0;
  #owners = new WeakMap<LedgerView, { readonly layout: number; readonly bySlot: Uint8Array }>();

  constructor(schedulerId: string) {
    this.#schedulerId = schedulerId;
  }

  /** Rises when hosts may have come to another slice. */
  get version(): number {
    return this.#version;
  }

  /** The schedulers that live, this one among them or not yet. */
  setMembers(members: readonly string[]): void {
    if (members.join() === this.#members.join()) return;
    this.#members = members;
    this.#version += 1;
    this.#owners = new WeakMap();
  }

  addTo({ request, roots, count }: HostBatch, weights: Float64Array, offset: number, multiplier: number): void {
    if (this.#members.length < 2) return;
    const { view } = request;
    const bySlot = this.#ownersOf(view);
    for (let index = 0; index < count; index += 1) {
      const root = roots[index]!;
      if (bySlot[root] === UNKNOWN) bySlot[root] = this.#owns(view.hosts.nameOf(root) ?? "") ? MINE : OTHERS;
      if (bySlot[root] === MINE) weights[offset + index] = weights[offset + index]! + multiplier;
    }
  }

  #ownersOf(view: LedgerView): Uint8Array {
    const known = this.#owners.get(view);
    if (known && known.layout === view.layout && known.bySlot.length >= view.slots.capacity) return known.bySlot;
    const bySlot = new Uint8Array(view.slots.capacity);
    this.#owners.set(view, { layout: view.layout, bySlot });
    return bySlot;
  }

  #owns(host: string): boolean {
    const own = seedOf(`${host}/${this.#schedulerId}`);
    return this.#members.every((member) => {
      const other = seedOf(`${host}/${member}`);
      return other < own || (other === own && member <= this.#schedulerId);
    });
  }
}
