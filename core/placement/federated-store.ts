import type { AllocationChange } from "../ledger/allocation-change.ts";
import type { ConsumerUuid, ProviderUuid } from "../ledger/ids.ts";
import { mergeNames, mergeUsages } from "./merge-cells.ts";
import type { PlacementChangeOutcome, PlacementStore, Reshape, ReshapeOutcome } from "./placement-store.ts";
import { Turns } from "./turns.ts";

export interface NamedStore {
  readonly name: string;
  readonly store: PlacementStore;
}

/**
 * The ledgers of several cells as one: reads are the union, a provider's writes go to the cell that has it, a new root goes to the
 * cell that the request or the setting names, children follow their parent. A change of allocations stays within one cell.
 * Names (resource classes, traits) are the same in all cells. With one cell this adds nothing.
 *
 * Which cell a consumer is in is looked up before it is written; within this process one write of a consumer waits for the
 * other. Two processes that are sent first writes of one consumer for two cells in the same moment are not kept apart.
 *
 * Cost: a provider's cell is asked of all cells once and then remembered; a wrong memory heals itself at the next miss.
 */
export class FederatedStore implements PlacementStore {
  readonly #cells: readonly NamedStore[];
  readonly #defaultCell: string;
  readonly #homes = new Map<ProviderUuid, NamedStore>();
  /** Lest two first writes of one consumer go to two cells. Several processes can still bring that about; see the class. */
  readonly #turns = new Turns<ConsumerUuid>();

  constructor(cells: readonly [NamedStore, ...NamedStore[]], defaultCell: string | null) {
    this.#cells = cells;
    this.#defaultCell = defaultCell ?? cells[0].name;
  }

  // --- providers

  async provider(uuid: ProviderUuid) {
    return this.#ask(uuid, (store) => store.provider(uuid));
  }

  async providers(filter: Parameters<PlacementStore["providers"]>[0]) {
    return (await this.#all((store) => store.providers(filter))).flat();
  }

  async createProvider(provider: Parameters<PlacementStore["createProvider"]>[0], home?: string) {
    if (provider.parent === provider.uuid) return { kind: "own-parent" } as const;
    if (provider.parent !== null) {
      const parentCell = await this.#homeOf(provider.parent);
      if (parentCell === null) return { kind: "unknown-parent" } as const;
      return this.#createIn(parentCell, provider);
    }
    const wanted = home ?? this.#defaultCell;
    const cell = this.#cells.find((one) => one.name === wanted);
    if (cell === undefined)
      return { kind: "unknown-cell", cell: wanted, known: this.#cells.map((one) => one.name) } as const;
    return this.#createIn(cell, provider);
  }

  /** Uuids and names are unique across cells; within one the database holds that, across them it is looked up first. */
  async #createIn(cell: NamedStore, provider: Parameters<PlacementStore["createProvider"]>[0]) {
    for (const other of this.#cells) {
      if (other !== cell && (await other.store.provider(provider.uuid))) return { kind: "uuid-taken" } as const;
    }
    if (await this.#isNameElsewhere(cell, provider.name)) return { kind: "name-taken" } as const;
    return cell.store.createProvider(provider);
  }

  async #isNameElsewhere(cell: NamedStore, name: string): Promise<boolean> {
    const others = this.#cells.filter((one) => one !== cell);
    const found = await Promise.all(others.map((other) => other.store.providers({ name })));
    return found.some((providers) => providers.length > 0);
  }

  async updateProvider(uuid: ProviderUuid, change: Parameters<PlacementStore["updateProvider"]>[1]) {
    const cell = await this.#homeOf(uuid);
    if (cell === null) return { kind: "not-found" } as const;
    if (change.parent) {
      const parentCell = await this.#homeOf(change.parent);
      if (parentCell !== null && parentCell !== cell) return { kind: "parent-elsewhere" } as const;
    }
    if (await this.#isNameElsewhere(cell, change.name)) return { kind: "name-taken" } as const;
    return cell.store.updateProvider(uuid, change);
  }

  async deleteProvider(uuid: ProviderUuid) {
    const cell = await this.#homeOf(uuid);
    if (cell === null) return "not-found";
    this.#homes.delete(uuid);
    return cell.store.deleteProvider(uuid);
  }

  // --- what hangs on a provider

  inventories(uuid: ProviderUuid) {
    return this.#ask(uuid, (store) => store.inventories(uuid));
  }
  async setInventories(...args: Parameters<PlacementStore["setInventories"]>) {
    const cell = await this.#homeOf(args[0]);
    return cell === null ? ({ kind: "not-found" } as const) : cell.store.setInventories(...args);
  }
  async putInventory(...args: Parameters<PlacementStore["putInventory"]>) {
    const cell = await this.#homeOf(args[0]);
    return cell === null ? ({ kind: "not-found" } as const) : cell.store.putInventory(...args);
  }
  async deleteInventory(...args: Parameters<PlacementStore["deleteInventory"]>) {
    const cell = await this.#homeOf(args[0]);
    return cell === null ? ({ kind: "not-found" } as const) : cell.store.deleteInventory(...args);
  }
  traits(uuid: ProviderUuid) {
    return this.#ask(uuid, (store) => store.traits(uuid));
  }
  async setTraits(...args: Parameters<PlacementStore["setTraits"]>) {
    const cell = await this.#homeOf(args[0]);
    return cell === null ? ({ kind: "not-found" } as const) : cell.store.setTraits(...args);
  }
  aggregates(uuid: ProviderUuid) {
    return this.#ask(uuid, (store) => store.aggregates(uuid));
  }
  async setAggregates(...args: Parameters<PlacementStore["setAggregates"]>) {
    const cell = await this.#homeOf(args[0]);
    return cell === null ? ({ kind: "not-found" } as const) : cell.store.setAggregates(...args);
  }
  allocationsOfProvider(uuid: ProviderUuid) {
    return this.#ask(uuid, (store) => store.allocationsOfProvider(uuid));
  }
  usagesOfProvider(uuid: ProviderUuid) {
    return this.#ask(uuid, (store) => store.usagesOfProvider(uuid));
  }

  // --- names, the same everywhere

  async resourceClasses() {
    return mergeNames(await this.#all((store) => store.resourceClasses()));
  }
  async allTraits(filter: Parameters<PlacementStore["allTraits"]>[0]) {
    const lists = await this.#all((store) => store.allTraits(filter));
    if (filter.associated !== false) return mergeNames(lists);
    // Associated with none means with none in any cell.
    const everywhere = lists.slice(1).map((list) => new Set(list.map((row) => row.name)));
    return lists[0]!.filter((row) => everywhere.every((names) => names.has(row.name)));
  }
  async createResourceClass(...args: Parameters<PlacementStore["createResourceClass"]>) {
    const outcomes = await this.#all((store) => store.createResourceClass(...args));
    return outcomes.includes("created") ? "created" : "exists";
  }
  async createTrait(...args: Parameters<PlacementStore["createTrait"]>) {
    const outcomes = await this.#all((store) => store.createTrait(...args));
    return outcomes.includes("created") ? "created" : "exists";
  }
  async renameResourceClass(...args: Parameters<PlacementStore["renameResourceClass"]>) {
    const outcomes = await this.#all((store) => store.renameResourceClass(...args));
    return outcomes.find((outcome) => outcome !== "renamed") ?? "renamed";
  }
  async deleteResourceClass(...args: Parameters<PlacementStore["deleteResourceClass"]>) {
    return this.#deleteName(
      (store) => store.deleteResourceClass(...args),
      (store) => store.createResourceClass(...args),
    );
  }
  async deleteTrait(...args: Parameters<PlacementStore["deleteTrait"]>) {
    return this.#deleteName(
      (store) => store.deleteTrait(...args),
      (store) => store.createTrait(...args),
    );
  }

  /** A name that one cell still uses stays in all of them. */
  async #deleteName(
    remove: (store: PlacementStore) => Promise<"deleted" | "not-found" | "in-use">,
    restore: (store: PlacementStore) => Promise<unknown>,
  ): Promise<"deleted" | "not-found" | "in-use"> {
    const removed: PlacementStore[] = [];
    for (const { store } of this.#cells) {
      const outcome = await remove(store);
      if (outcome === "in-use") {
        await Promise.all(removed.map(restore));
        return "in-use";
      }
      if (outcome === "deleted") removed.push(store);
    }
    return removed.length > 0 ? "deleted" : "not-found";
  }

  // --- consumers

  async consumer(uuid: ConsumerUuid) {
    return (await this.#all((store) => store.consumer(uuid))).find((found) => found !== null) ?? null;
  }
  async consumers(uuids: readonly ConsumerUuid[]) {
    return (await this.#all((store) => store.consumers(uuids))).flat();
  }
  async usagesOfProject(...args: Parameters<PlacementStore["usagesOfProject"]>) {
    return mergeUsages(await this.#all((store) => store.usagesOfProject(...args)));
  }

  async applyAllocations(change: AllocationChange): Promise<PlacementChangeOutcome> {
    if (this.#cells.length === 1) return this.#cells[0]!.store.applyAllocations(change);
    return this.#turns.take(consumersOf(change), async () => {
      const cells = await this.#cellsOf(change, []);
      if (cells.length > 1) return { kind: "several-cells", cells: cells.map((cell) => cell.name) };
      return (cells[0] ?? this.#cells[0]!).store.applyAllocations(change);
    });
  }

  async reshape(reshape: Reshape): Promise<ReshapeOutcome> {
    if (this.#cells.length === 1) return this.#cells[0]!.store.reshape(reshape);
    const providers = reshape.inventories.map((one) => one.provider);
    return this.#turns.take(consumersOf(reshape.change), async () => {
      const cells = await this.#cellsOf(reshape.change, providers);
      if (cells.length > 1)
        return { kind: "refused", outcome: { kind: "several-cells", cells: cells.map((cell) => cell.name) } };
      return (cells[0] ?? this.#cells[0]!).store.reshape(reshape);
    });
  }

  /** The cells that a change is about: of the providers it names, and of what its consumers hold now. */
  async #cellsOf(change: AllocationChange, providers: readonly ProviderUuid[]): Promise<readonly NamedStore[]> {
    const items = change.steps.flatMap((step) => (step.kind === "replace" ? step.items : []));
    const named = new Set([...providers, ...items.map((item) => item.provider)]);
    const homes = await Promise.all([...named].map((uuid) => this.#homeOf(uuid)));
    const held = await this.#all((store) => store.consumers([...consumersOf(change)]));
    const cells = new Set(homes.filter((home) => home !== null));
    held.forEach((list, at) => {
      if (list.length > 0) cells.add(this.#cells[at]!);
    });
    return this.#cells.filter((cell) => cells.has(cell));
  }

  // --- where things are

  #all<Result>(ask: (store: PlacementStore) => Promise<Result>): Promise<Result[]> {
    return Promise.all(this.#cells.map((cell) => ask(cell.store)));
  }

  async #ask<Result>(
    uuid: ProviderUuid,
    ask: (store: PlacementStore) => Promise<Result | null>,
  ): Promise<Result | null> {
    const cell = await this.#homeOf(uuid);
    return cell === null ? null : ask(cell.store);
  }

  async #homeOf(uuid: ProviderUuid): Promise<NamedStore | null> {
    if (this.#cells.length === 1) return this.#cells[0]!;
    const known = this.#homes.get(uuid);
    if (known !== undefined && (await known.store.provider(uuid)) !== null) return known;
    const found = await this.#all((store) => store.provider(uuid));
    const at = found.findIndex((provider) => provider !== null);
    if (at < 0) {
      this.#homes.delete(uuid);
      return null;
    }
    if (this.#homes.size >= HOMES_MAX) this.#homes.clear();
    this.#homes.set(uuid, this.#cells[at]!);
    return this.#cells[at]!;
  }
}

function consumersOf(change: AllocationChange): ReadonlySet<ConsumerUuid> {
  return new Set(change.steps.flatMap((step) => (step.kind === "replace" ? [step.consumer] : [step.from, step.to])));
}

/** Providers whose cell is remembered; past it the memory starts anew. */
const HOMES_MAX = 1_000_000;
