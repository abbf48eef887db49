import type { AllocationChange } from "../../../../core/ledger/allocation-change.ts";
import type { ConsumerUuid, ProviderUuid } from "../../../../core/ledger/ids.ts";
import type { CellArbiter, ClaimedName } from "../../../../core/stores/api/cell-arbiter.ts";
import type {
  PlacementChangeOutcome,
  PlacementStore,
  Reshape,
  ReshapeOutcome,
} from "../../../../core/stores/cell/placement-store.ts";
import { Turns } from "../../../../runtime/turns.ts";
import { mergeNames, mergeUsages } from "./merge-cells.ts";

export interface NamedStore {
  readonly name: string;
  readonly store: PlacementStore;
}

/**
 * Presents the ledgers of several cells as one. Reads return the union. Writes to a provider go to its cell, a new root goes to the cell
 * that the request or the setting names, and a child follows its parent. A change of allocations stays within one cell. Names (resource
 * classes, traits) are the same in all cells. With one cell this class adds nothing.
 *
 * The cell of a name or a consumer is looked up before each write. An arbiter decides between processes that write the same name or
 * consumer in two cells at the same moment. Within this process, writes of one consumer wait for each other.
 *
 * Cost: all cells are asked once for a provider's cell, which is then remembered. A wrong memory is corrected at the next miss.
 */
export class FederatedStore implements PlacementStore {
  readonly #cells: readonly NamedStore[];
  readonly #defaultCell: string;
  readonly #homes = new Map<ProviderUuid, NamedStore>();
  /** Orders the writes of each consumer, so that two first writes cannot go to two cells. */
  readonly #turns = new Turns<ConsumerUuid>();
  /** Null when no other process writes to these cells, or when there is only one cell. */
  readonly #arbiter: CellArbiter | null;

  constructor(
    cells: readonly [NamedStore, ...NamedStore[]],
    defaultCell: string | null,
    arbiter: CellArbiter | null = null,
  ) {
    this.#cells = cells;
    this.#arbiter = cells.length === 1 ? null : arbiter;
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

  /**
   * Creates the provider if its uuid and name are unique. The cell's database checks this within the cell; the arbiter and a look into the
   * other cells check it across cells.
   */
  async #createIn(cell: NamedStore, provider: Parameters<PlacementStore["createProvider"]>[0]) {
    const names: readonly ClaimedName[] = [
      { kind: "provider-uuid", key: provider.uuid },
      { kind: "provider-name", key: provider.name },
    ];
    const refused = () => ({ kind: "name-taken" }) as const;
    return this.#underClaim(names, cell, refused, async ({ mayWrite }) => {
      for (const other of this.#cells) {
        if (other !== cell && (await other.store.provider(provider.uuid))) return { kind: "uuid-taken" } as const;
      }
      if (await this.#isNameElsewhere(cell, provider.name)) return { kind: "name-taken" } as const;
      return mayWrite() ? cell.store.createProvider(provider) : refused();
    });
  }

  /**
   * Runs a write under a claim. `refused` is called with the cell for which another process has the names, or with this cell when the claim
   * expired before the write.
   */
  async #underClaim<Outcome>(
    names: readonly ClaimedName[],
    cell: NamedStore,
    refused: (claimedFor: string) => Outcome | Promise<Outcome>,
    write: (claim: GrantedNames) => Promise<Outcome>,
  ): Promise<Outcome> {
    const arbiter = this.#arbiter;
    if (arbiter === null || names.length === 0) return write(NO_CLAIM);
    const claim = await arbiter.claim(names, cell.name);
    if (claim.kind === "refused") return refused(claim.cell);
    return write({ mayWrite: claim.mayWrite, release: () => arbiter.release(names, claim.token) });
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
    const refused = () => ({ kind: "name-taken" }) as const;
    return this.#underClaim([{ kind: "provider-name", key: change.name }], cell, refused, async ({ mayWrite }) => {
      if (await this.#isNameElsewhere(cell, change.name)) return refused();
      return mayWrite() ? cell.store.updateProvider(uuid, change) : refused();
    });
  }

  async deleteProvider(uuid: ProviderUuid) {
    const cell = await this.#homeOf(uuid);
    if (cell === null) return "not-found";
    this.#homes.delete(uuid);
    const provider = this.#arbiter === null ? null : await cell.store.provider(uuid);
    const names: readonly ClaimedName[] =
      provider === null
        ? []
        : [
            { kind: "provider-uuid", key: uuid },
            { kind: "provider-name", key: provider.name },
          ];
    const remove = () => cell.store.deleteProvider(uuid);
    // A refused claim does not prevent the removal, since no other process's use of the name is a reason to keep the provider.
    return this.#underClaim(names, cell, remove, async ({ release }) => {
      const outcome = await remove();
      if (outcome === "deleted") await release();
      return outcome;
    });
  }

  // --- inventories and other parts of a provider

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

  // --- names, which are the same in all cells

  async resourceClasses() {
    return mergeNames(await this.#all((store) => store.resourceClasses()));
  }
  async allTraits(filter: Parameters<PlacementStore["allTraits"]>[0]) {
    const lists = await this.#all((store) => store.allTraits(filter));
    if (filter.associated !== false) return mergeNames(lists);
    // A name without associations has none in any cell.
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

  /** Deletes a name in all cells, or restores it in all of them when one cell still uses it. */
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
    const severalCells = (cells: readonly string[]): PlacementChangeOutcome => ({ kind: "several-cells", cells });
    return this.#inOneCell(change, [], severalCells, (store) => store.applyAllocations(change));
  }

  async reshape(reshape: Reshape): Promise<ReshapeOutcome> {
    if (this.#cells.length === 1) return this.#cells[0]!.store.reshape(reshape);
    const providers = reshape.inventories.map((one) => one.provider);
    const severalCells = (cells: readonly string[]): ReshapeOutcome => ({
      kind: "refused",
      outcome: { kind: "several-cells", cells },
    });
    return this.#inOneCell(reshape.change, providers, severalCells, (store) => store.reshape(reshape));
  }

  /**
   * Writes to the only cell that the change concerns: the cell of the providers that it names and of the allocations that its consumers
   * hold.
   */
  #inOneCell<Outcome>(
    change: AllocationChange,
    providers: readonly ProviderUuid[],
    severalCells: (cells: readonly string[]) => Outcome,
    write: (store: PlacementStore) => Promise<Outcome>,
  ): Promise<Outcome> {
    const consumers = [...consumersOf(change)];
    const namesOf = (cells: Iterable<NamedStore>) => {
      const about = new Set(cells);
      return this.#cells.filter((cell) => about.has(cell)).map((cell) => cell.name);
    };
    return this.#turns.take(consumers, async () => {
      const homes = await this.#homesNamed(change, providers);
      if (homes.length > 1) return severalCells(namesOf(homes));
      const [cell] = homes.length > 0 ? homes : await this.#holders(consumers);
      // No cell knows any of these providers and consumers, so every cell would give the same refusal.
      if (cell === undefined) return write(this.#cells[0]!.store);
      const names = consumers.map((key): ClaimedName => ({ kind: "consumer", key }));
      const refused = (claimedFor: string) =>
        severalCells(claimedFor === cell.name ? [cell.name] : [cell.name, claimedFor]);
      return this.#underClaim(names, cell, refused, async ({ mayWrite, release }) => {
        const about = [cell, ...(await this.#holders(consumers))];
        if (about.some((other) => other !== cell)) return severalCells(namesOf(about));
        if (!mayWrite()) return refused(cell.name);
        const outcome = await write(cell.store);
        if (givesAllBack(change)) await release();
        return outcome;
      });
    });
  }

  /** The cells of the providers that a change names. */
  async #homesNamed(change: AllocationChange, providers: readonly ProviderUuid[]): Promise<readonly NamedStore[]> {
    const items = change.steps.flatMap((step) => (step.kind === "replace" ? step.items : []));
    const named = new Set([...providers, ...items.map((item) => item.provider)]);
    const homes = await Promise.all([...named].map((uuid) => this.#homeOf(uuid)));
    return [...new Set(homes.filter((home) => home !== null))];
  }

  /** The cells in which the consumers have allocations now. */
  async #holders(consumers: readonly ConsumerUuid[]): Promise<readonly NamedStore[]> {
    const held = await this.#all((store) => store.consumers(consumers));
    return this.#cells.filter((_, at) => held[at]!.length > 0);
  }

  // --- which cell has what

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

interface GrantedNames {
  /** Returns false when the claim may expire before a write that begins now. */
  readonly mayWrite: () => boolean;
  readonly release: () => Promise<void>;
}

const NO_CLAIM: GrantedNames = { mayWrite: () => true, release: async () => undefined };

/** Whether the change leaves its consumers without allocations. They may then begin again in any cell. */
function givesAllBack(change: AllocationChange): boolean {
  return change.steps.every((step) => step.kind === "replace" && step.items.length === 0);
}

function consumersOf(change: AllocationChange): ReadonlySet<ConsumerUuid> {
  return new Set(change.steps.flatMap((step) => (step.kind === "replace" ? [step.consumer] : [step.from, step.to])));
}

/** Maximum number of providers whose cell is remembered. Beyond it the memory is cleared. */
const HOMES_MAX = 1_000_000;
