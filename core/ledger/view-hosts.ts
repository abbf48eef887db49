import type { ProviderUuid } from "./ids.ts";

/** A host as a ledger view knows it. */
export interface HostInView {
  readonly name: string;
  readonly provider: ProviderUuid;
  readonly up: boolean;
  readonly disabled: boolean;
}

/** Bits of `ViewHosts.state`; 0: the provider is no host's root. */
export const HOST = 1;
export const HOST_UP = 2;
export const HOST_DISABLED = 4;
/** State of a host that new servers may go to. */
export const HOST_OPEN = HOST | HOST_UP;

/** Which provider tree belongs to which host, and whether the host may take servers. */
export class ViewHosts {
  /** By slot of the tree's root: bits of HOST, HOST_UP, HOST_DISABLED. */
  state = new Uint8Array(0);
  readonly #byName = new Map<string, HostInView & { readonly slot: number }>();
  readonly #nameOf: (string | undefined)[] = [];
  #mapping = 0;

  get count(): number {
    return this.#byName.size;
  }

  /** Rises when a slot is another host's than before. */
  get mapping(): number {
    return this.#mapping;
  }

  /** Slots that the view's other arrays have; grows the state along. */
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

  /** The root's slot of a host, or -1. */
  slotOf(name: string): number {
    return this.#byName.get(name)?.slot ?? -1;
  }

  /** The host whose tree's root has this slot. */
  nameOf(slot: number): string | undefined {
    return this.#nameOf[slot];
  }

  all(): IterableIterator<HostInView> {
    return this.#byName.values();
  }

  get memoryBytes(): number {
    return this.state.length + this.#byName.size * 160;
  }

  /** Unless another host has taken the slot over in the meantime. */
  #clear(slot: number, name: string): void {
    if (this.#nameOf[slot] !== name) return;
    this.#mapping += 1;
    this.#nameOf[slot] = undefined;
    this.state[slot] = 0;
  }
}
