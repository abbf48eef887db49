import type { LedgerView } from "../../ledger/ledger-view.ts";
import { seedOf } from "../seeded-random.ts";
import type { AbsoluteWeigher, HostBatch } from "./weigher.ts";

const UNKNOWN = 0;
const MINE = 1;
const OTHERS = 2;

/**
 * Prefers the hosts of the scheduler's own slice, so that several schedulers choose different hosts. It takes another scheduler's host when
 * that host is better by more than the multiplier, or when the slice has no host that fits.
 *
 * A host belongs to the live scheduler with the highest hash of (scheduler, host). With this rendezvous hashing, a scheduler that comes or
 * goes moves only its own share of hosts.
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

  /** Rises when hosts may have moved to another slice. */
  get version(): number {
    return this.#version;
  }

  /** Sets the live schedulers, which may not yet include this one. */
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
