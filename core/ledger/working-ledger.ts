import { assert } from "../assert.ts";
import type { ConsumerUuid, ProviderUuid, ResourceClass } from "./ids.ts";
import { type Holder, type LedgerDelta, type LedgerState, providerRow } from "./ledger-state.ts";
import type { AllocationItem, Inventory, Provider } from "./model.ts";
import type { RowChange } from "./row-change.ts";

/** A state with the steps of one change applied on top of it. Nothing is written to the state. */
export class WorkingLedger {
  readonly #state: LedgerState;
  readonly #holders = new Map<ConsumerUuid, Holder | null>();
  /** How much the steps so far have added to each use. */
  readonly #added = new Map<ProviderUuid, Map<ResourceClass, number>>();
  readonly #bumped = new Set<ProviderUuid>();

  constructor(state: LedgerState) {
    this.#state = state;
  }

  provider(uuid: ProviderUuid): Provider | undefined {
    return this.#state.providers.get(uuid);
  }

  holder(uuid: ConsumerUuid): Holder | undefined {
    const changed = this.#holders.get(uuid);
    return changed === undefined ? this.#state.consumers.get(uuid) : (changed ?? undefined);
  }

  setHolder(uuid: ConsumerUuid, holder: Holder | null): void {
    this.#holders.set(uuid, holder);
  }

  inventory(item: Pick<AllocationItem, "provider" | "resourceClass">): Inventory & { readonly used: number } {
    const inventory = this.#state.providers.get(item.provider)?.inventories.get(item.resourceClass);
    assert(inventory !== undefined, `provider ${item.provider} has no ${item.resourceClass}, but it is allocated`);
    return inventory;
  }

  addUse(item: Pick<AllocationItem, "provider" | "resourceClass">, amount: number): void {
    const classes = this.#added.get(item.provider) ?? new Map<ResourceClass, number>();
    this.#added.set(item.provider, classes);
    classes.set(item.resourceClass, (classes.get(item.resourceClass) ?? 0) + amount);
  }

  /** The use of an inventory before the first step and after the steps so far. */
  use(item: Pick<AllocationItem, "provider" | "resourceClass">): { readonly before: number; readonly after: number } {
    const before = this.inventory(item).used;
    const after = before + (this.#added.get(item.provider)?.get(item.resourceClass) ?? 0);
    assert(after >= 0, `the use of ${item.resourceClass} of provider ${item.provider} would fall below zero`);
    return { before, after };
  }

  /** Raises the provider's generation once, however often it is called. */
  bump(uuid: ProviderUuid): void {
    this.#bumped.add(uuid);
  }

  /** The changes of the steps, as records and rows. */
  delta(): LedgerDelta {
    const providers = new Map<ProviderUuid, Provider>();
    const rows: RowChange[] = [];
    for (const uuid of new Set([...this.#added.keys(), ...this.#bumped])) {
      const before = this.#state.providers.get(uuid);
      assert(before !== undefined, `provider ${uuid} is gone, but it is allocated`);
      const inventories = new Map(before.inventories);
      const bumped = this.#bumped.has(uuid);
      const provider: Provider = { ...before, generation: before.generation + (bumped ? 1 : 0), inventories };
      if (bumped) rows.push(providerRow(provider));
      for (const [resourceClass, added] of this.#added.get(uuid) ?? []) {
        if (added === 0) continue;
        const { used: _, ...inventory } = this.inventory({ provider: uuid, resourceClass });
        const used = this.use({ provider: uuid, resourceClass }).after;
        inventories.set(resourceClass, { ...inventory, used });
        rows.push({ kind: "inventory-put", provider: uuid, resourceClass, inventory, used });
      }
      providers.set(uuid, provider);
    }
    return { providers, consumers: this.#holders, rows };
  }
}
