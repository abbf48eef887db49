import type { Shortfall } from "./allocation-change.ts";
import { ChangedRoots } from "./changed-roots.ts";
import type { AggregateUuid, ProviderUuid, ResourceClass, Trait } from "./ids.ts";
import { InventoryColumn } from "./inventory-column.ts";
import { KnownNames } from "./known-names.ts";
import type { AllocationItem, Inventory, Provider } from "./model.ts";
import { NamedSets } from "./named-sets.ts";
import { ProviderSlots } from "./provider-slots.ts";
import { ReservedClaims } from "./reserved-claims.ts";
import type { RowChange } from "./row-change.ts";
import { type HostInView, ViewHosts } from "./view-hosts.ts";

type NameChange = Extract<RowChange, { readonly kind: `${"trait" | "aggregate"}-${"added" | "removed"}` }>;

/**
 * The data that a search needs of one cell's ledger, in arrays by provider slot, updated row by row.
 *
 * Rows of a transaction may come in any order (a child before its parent, an inventory before its provider) and twice. Readers run
 * synchronously between two transactions, so they may keep only UUIDs across an `await`. A reload builds another view and `adopt`s it, so
 * that readers of this view never see half a cell.
 */
export class LedgerView {
  /** Roots whose trees, hosts or reserved claims changed. */
  readonly changes = new ChangedRoots();
  #slots = new ProviderSlots();
  #columns = new Map<ResourceClass, InventoryColumn>();
  #traits = new NamedSets<Trait>();
  #aggregates = new NamedSets<AggregateUuid>();
  #hosts = new ViewHosts();
  #names = new KnownNames();
  readonly #reservations = new ReservedClaims();
  #version = 0;
  #layout = 0;
  #columnsVersion = 0;
  /** False while rows of traits or aggregates are gathered, or a column may be empty. */
  #isSettled = true;

  /** Rises with every change. */
  get version(): number {
    return this.#version;
  }

  /** Rises when slots may belong to other providers than before. */
  get layout(): number {
    return this.#layout;
  }

  /** Providers, their trees, and their trait and aggregate sets, as the arrays of a search. */
  get slots(): Readonly<ProviderSlots> {
    return this.#slots;
  }

  get hosts(): Readonly<ViewHosts> {
    return this.#hosts;
  }

  get traits(): Readonly<NamedSets<Trait>> {
    return this.#traits;
  }

  get aggregates(): Readonly<NamedSets<AggregateUuid>> {
    return this.#aggregates;
  }

  /** The classes and traits that exist. An in-memory ledger has no list of names, so it adds none here. */
  get names(): Readonly<KnownNames> {
    return this.#names;
  }

  /** Rises when a class has got its first column or another one, or has lost its column, and when the columns have got more slots. */
  get columnsVersion(): number {
    return this.#columnsVersion;
  }

  /** The inventories of one class, or undefined if no provider has any. */
  column(resourceClass: ResourceClass): Readonly<InventoryColumn> | undefined {
    return this.#columns.get(resourceClass);
  }

  resourceClasses(): IterableIterator<ResourceClass> {
    return this.#columns.keys();
  }

  get providerCount(): number {
    return this.#slots.knownCount;
  }

  /** An estimate of the memory that the view uses on the heap and in array buffers. */
  get memoryBytes(): number {
    let bytes =
      this.#slots.memoryBytes +
      this.#hosts.memoryBytes +
      this.#names.memoryBytes +
      this.#traits.memoryBytes +
      this.#aggregates.memoryBytes;
    for (const column of this.#columns.values()) bytes += column.memoryBytes;
    return bytes;
  }

  /** Applies a transaction of one row. Cost: a transaction of many rows costs less by `applyAll`, which enters the traits of each provider once. */
  apply(change: RowChange): void {
    this.#applyRow(change);
    if (!this.#isSettled) this.#settle();
  }

  /** Applies the rows of a transaction, or a part of them. `applied` is called after each row. Traits and aggregates change with the last row. */
  applyAll(changes: Iterable<RowChange>, applied?: (change: RowChange) => void): void {
    for (const change of changes) {
      this.#applyRow(change);
      applied?.(change);
    }
    if (!this.#isSettled) this.#settle();
  }

  #applyRow(change: RowChange): void {
    this.#version += 1;
    switch (change.kind) {
      case "class-known":
        this.#names.classes.add(change.resourceClass);
        break;
      case "class-forgotten":
        this.#names.classes.delete(change.resourceClass);
        break;
      case "class-renamed":
        this.#renameClass(change.from, change.to);
        break;
      case "trait-known":
        this.#names.traits.add(change.trait);
        break;
      case "trait-forgotten":
        this.#names.traits.delete(change.trait);
        break;
      case "provider-put":
        this.#putProvider(change);
        break;
      case "provider-removed":
        this.#removeProvider(change.uuid);
        break;
      case "inventory-put":
        this.#putInventory(change);
        break;
      case "inventory-removed":
        this.#removeInventory(change.provider, change.resourceClass);
        break;
      case "trait-added":
      case "trait-removed":
        this.#changeName(this.#traits, "traitSet", { ...change, name: change.trait });
        break;
      case "aggregate-added":
      case "aggregate-removed":
        this.#changeName(this.#aggregates, "aggregateSet", { ...change, name: change.aggregate });
        break;
      case "host-put":
        this.#putHost({ name: change.host, provider: change.provider, up: change.up, disabled: change.disabled });
        break;
      case "host-removed":
        this.#removeHost(change.host);
        break;
      case "server-put":
      case "server-removed":
      case "move-put":
      case "move-removed":
        // These rows use no resources. Their readers keep them beside the view.
        break;
      default:
        change satisfies never;
    }
  }

  /**
   * Counts a claim in flight as used until `release` is called with its id. That happens when the view shows the claim, or when the claim has
   * failed. A reserved claim survives reloads, and replaces an earlier one with the same id. Every search of this view sees it.
   */
  reserve(id: string, items: readonly AllocationItem[]): void {
    this.#reservations.add(this.#arrays(), id, items);
    this.#version += 1;
  }

  /** Releases the claim. An unknown id is ignored. */
  release(id: string): void {
    this.#reservations.release(this.#arrays(), id);
    this.#version += 1;
  }

  /**
   * Merges the shortfalls of a refused claim: no more is free than they report. This holds until the next row of the inventory arrives,
   * which may be newer or older. Unknown providers and classes are ignored.
   */
  learnShortfalls(shortfalls: readonly Shortfall[]): void {
    for (const { provider, resourceClass, reason, used, limit } of shortfalls) {
      const slot = this.#slots.find(provider);
      const column = this.#columns.get(resourceClass);
      if (reason !== "capacity" || slot < 0 || !column?.learnFree(slot, limit - used)) continue;
      this.#touchTreeOf(slot);
      this.#version += 1;
    }
  }

  /** Records a change of data beside this view about the host of this root, so that followers of `changes` look again. */
  touch(root: number): void {
    this.changes.touch(root);
    this.#version += 1;
  }

  /** Records such a change of any number of hosts. */
  touchAll(): void {
    this.changes.touchAll();
    this.#version += 1;
  }

  /** Number of reserved claims. */
  get reservedCount(): number {
    return this.#reservations.count;
  }

  /** Begins a new state beside the present one. `show` replaces the present one by it, and claims that are held stay held. */
  beginLoad(): { applyAll(changes: Iterable<RowChange>): void; show(): void } {
    const loaded = new LedgerView();
    return { applyAll: (changes) => loaded.applyAll(changes), show: () => this.adopt(loaded) };
  }

  /** Replaces the content with that of `loaded`, which must not be used afterwards. */
  adopt(loaded: LedgerView): void {
    this.#slots = loaded.#slots;
    this.#columns = loaded.#columns;
    this.#traits = loaded.#traits;
    this.#aggregates = loaded.#aggregates;
    this.#hosts = loaded.#hosts;
    this.#names = loaded.#names;
    this.#version += 1;
    this.#layout += 1;
    this.#columnsVersion += 1;
    this.#reservations.reserveAgain(this.#arrays());
    this.changes.touchAll();
  }

  /** A provider with everything that the view knows about it, or undefined. Cost: allocates, so it is not meant for searches. */
  provider(uuid: ProviderUuid): Provider | undefined {
    const slots = this.#slots;
    const slot = slots.find(uuid);
    if (slot < 0) return undefined;
    const inventories = new Map<ResourceClass, Inventory & { readonly used: number }>();
    for (const [resourceClass, column] of this.#columns) {
      const inventory = column.at(slot);
      if (inventory) inventories.set(resourceClass, inventory);
    }
    const parent = slots.parent[slot]!;
    return {
      uuid,
      name: slots.nameOf(slot),
      parent: parent < 0 ? null : slots.uuid(parent),
      root: slots.uuid(slots.root[slot]!),
      generation: slots.generation(slot),
      inventories,
      traits: new Set(this.#traits.names(slots.traitSet[slot]!)),
      aggregates: new Set(this.#aggregates.names(slots.aggregateSet[slot]!)),
    };
  }

  /** UUIDs of a tree's providers, the root first. Empty when the root is unknown. */
  tree(root: ProviderUuid): ProviderUuid[] {
    const slot = this.#slots.find(root);
    return slot < 0 ? [] : [root, ...this.#slots.descendants(slot).map((descendant) => this.#slots.uuid(descendant))];
  }

  host(name: string): HostInView | undefined {
    return this.#hosts.get(name);
  }

  #take(uuid: ProviderUuid): number {
    const slot = this.#slots.take(uuid);
    const capacity = this.#slots.capacity;
    if (capacity > this.#hosts.state.length) this.#columnsVersion += 1;
    this.#hosts.grow(capacity);
    for (const column of this.#columns.values()) if (column.free.length < capacity) column.grow(capacity);
    return slot;
  }

  #putProvider(change: RowChange & { readonly kind: "provider-put" }): void {
    const slot = this.#take(change.uuid);
    const parent = change.parent === null ? -1 : this.#take(change.parent);
    const root = this.#take(change.root);
    this.#touchTreeOf(slot);
    this.#slots.put(slot, { name: change.name, generation: change.generation, parent, root });
    this.#touchTreeOf(slot);
  }

  #removeProvider(uuid: ProviderUuid): void {
    const slot = this.#slots.findMentioned(uuid);
    if (slot < 0) return;
    this.#touchTreeOf(slot);
    for (const column of this.#columns.values()) this.#removeFrom(column, slot);
    for (const [sets, of] of [
      [this.#traits, this.#slots.traitSet],
      [this.#aggregates, this.#slots.aggregateSet],
    ] as const) {
      if (sets.gather(slot, of[slot]!)) this.#slots.refer(slot);
      sets.removeAll();
    }
    this.#isSettled = false;
    this.#slots.forget(slot);
    this.#layout += 1;
    this.changes.touch(slot);
    this.#reservations.reserveAgain(this.#arrays());
  }

  #putInventory(change: RowChange & { readonly kind: "inventory-put" }): void {
    const slot = this.#take(change.provider);
    let column = this.#columns.get(change.resourceClass);
    if (!column) {
      column = new InventoryColumn(this.#slots.capacity);
      this.#columns.set(change.resourceClass, column);
      this.#columnsVersion += 1;
    }
    if (column.put(slot, change.inventory, change.used)) this.#slots.refer(slot);
    this.#touchTreeOf(slot);
  }

  #removeInventory(provider: ProviderUuid, resourceClass: ResourceClass): void {
    const slot = this.#slots.findMentioned(provider);
    if (slot < 0) return;
    this.#touchTreeOf(slot);
    this.#removeFrom(this.#columns.get(resourceClass), slot);
  }

  #removeFrom(column: InventoryColumn | undefined, slot: number): void {
    if (!column?.remove(slot)) return;
    if (column.count === 0) this.#isSettled = false;
    this.#slots.drop(slot);
  }

  #renameClass(from: ResourceClass, to: ResourceClass): void {
    this.#names.classes.delete(from);
    this.#names.classes.add(to);
    const column = this.#columns.get(from);
    if (!column) return;
    this.#columns.delete(from);
    this.#columns.set(to, column);
    this.#columnsVersion += 1;
    this.changes.touchAll();
  }

  #changeName<Name extends string>(
    sets: NamedSets<Name>,
    of: "traitSet" | "aggregateSet",
    {
      kind,
      provider,
      name,
    }: { readonly kind: NameChange["kind"]; readonly provider: ProviderUuid; readonly name: Name },
  ): void {
    const isAdded = kind === "trait-added" || kind === "aggregate-added";
    const slot = isAdded ? this.#take(provider) : this.#slots.findMentioned(provider);
    if (slot < 0) return;
    this.#touchTreeOf(slot);
    this.#isSettled = false;
    // No other provider may get the slot while rows of this provider's names are gathered.
    if (sets.gather(slot, this.#slots[of][slot]!)) this.#slots.refer(slot);
    if (isAdded) sets.add(name);
    else sets.remove(name);
  }

  /** Ends a batch: numbers the sets of the rows that it gathered, and frees what no provider has any longer. */
  #settle(): void {
    this.#isSettled = true;
    for (const slot of this.#traits.settle(this.#slots.traitSet)) this.#slots.drop(slot);
    for (const slot of this.#aggregates.settle(this.#slots.aggregateSet)) this.#slots.drop(slot);
    // A column has a place for each slot, so those of former classes would fill the memory if a host kept reporting other classes.
    const empty = [...this.#columns].filter(([, column]) => column.count === 0);
    if (empty.length === 0) return;
    for (const [resourceClass] of empty) this.#columns.delete(resourceClass);
    this.#columnsVersion += 1;
    this.#reservations.reserveAgain(this.#arrays());
  }

  #putHost(host: HostInView): void {
    const slot = this.#take(host.provider);
    const before = this.#hosts.put(slot, host);
    this.changes.touch(slot);
    if (before === slot) return;
    if (before >= 0) this.changes.touch(before);
    this.#slots.refer(slot);
    if (before >= 0) this.#slots.drop(before);
  }

  #removeHost(name: string): void {
    const slot = this.#hosts.remove(name);
    if (slot < 0) return;
    this.changes.touch(slot);
    this.#slots.drop(slot);
  }

  #touchTreeOf(slot: number): void {
    this.changes.touch(this.#slots.root[slot]!);
  }

  #arrays() {
    return { slots: this.#slots, columns: this.#columns, changes: this.changes };
  }
}
