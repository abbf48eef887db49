import type { ProviderUuid } from "./ids.ts";

/** A host as a ledger view knows it. */
export interface HostInView {
  readonly name: string;
  readonly provider: ProviderUuid;
  readonly up: boolean;
  readonly disabled: boolean;
}

/** Bits of `ViewHosts.state`. It is 0 when the provider is not the root of a host. */
export const HOST = 1;
export const HOST_UP = 2;
export const HOST_DISABLED = 4;
/** State of a host that accepts new servers. */
export const HOST_OPEN = HOST | HOST_UP;

/** Maps provider trees to hosts, and tells whether a host accepts servers. */
export class ViewHosts {
  /** Bits HOST, HOST_UP and HOST_DISABLED, by slot of the tree's root. */
  state = new Uint8Array(0);
  readonly #byName = new Map<string, HostInView & { readonly slot: number }>();
  readonly #nameOf: (string | undefined)[] = [];
  #mapping = 0;

  get count(): number {
    return this.#byName.size;
  }

  /** Rises when a slot gets another host than before. */
  get mapping(): number {
    return this.#mapping;
  }

  /** Grows the state to the number of slots that the view's other arrays have. */
  grow(slots: number): void {
    if (slots <= this.state.length) return;
    const state = new Uint8Array(slots);
    state.set(this.state);
    this.state = state;
  }

  /** Returns the slot that the host had before, or -1. */
  put(slot: number, host: HostInView): number {
    const before = this.#byName.get(host.name)?.slot ?? -1;
    if (before >= 0 && before !== slot) this.#clear(before, host.name);
    if (this.#nameOf[slot] !== host.name) this.#mapping += 1;
    this.#byName.set(host.name, { ...host, slot });
    this.#nameOf[slot] = host.name;
    this.state[slot] = HOST | (host.up ? HOST_UP : 0) | (host.disabled ? HOST_DISABLED : 0);
    return before;
  }

  /** Returns the slot that the host had, or -1. */
  remove(name: string): number {
    const slot = this.#byName.get(name)?.slot ?? -1;
    if (slot < 0) return -1;
    this.#byName.delete(name);
    this.#clear(slot, name);
    return slot;
  }

  get(name: string): HostInView | undefined {
    return this.#byName.get(name);
  }

  /** The slot of a host's root, or -1. */
  slotOf(name: string): number {
    return this.#byName.get(name)?.slot ?? -1;
  }

  /** The host whose root has this slot. */
  nameOf(slot: number): string | undefined {
    return this.#nameOf[slot];
  }

  all(): IterableIterator<HostInView> {
    return this.#byName.values();
  }

  get memoryBytes(): number {
    return this.state.length + this.#byName.size * 160;
  }

  /** Clears the slot, unless another host has taken it in the meantime. */
  #clear(slot: number, name: string): void {
    if (this.#nameOf[slot] !== name) return;
    this.#mapping += 1;
    this.#nameOf[slot] = undefined;
    this.state[slot] = 0;
  }
}
