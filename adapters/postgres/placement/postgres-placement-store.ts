import type { Pool } from "pg";
import type { AllocationChange } from "../../../core/ledger/allocation-change.ts";
import type { Ledger } from "../../../core/stores/cell/ledger-port.ts";
import type { PlacementChangeOutcome, PlacementStore } from "../../../core/stores/cell/placement-store.ts";
import { Batcher } from "../../../runtime/batcher.ts";
import { runStored } from "../client/run-stored.ts";
import { mayBeFirstClaim } from "../ledger/encode-first-claims.ts";
import { aggregateWriter, readAggregates, readTraits, traitWriter } from "./associations.ts";
import { readAllocationsOfProvider, readConsumers, readUsagesOfProject, readUsagesOfProvider } from "./consumers.ts";
import { inventoryWriter, putInventory, readInventories, removeInventory } from "./inventories.ts";
import {
  createResourceClass,
  createTrait,
  deleteResourceClass,
  readAllTraits,
  readResourceClasses,
  removeTrait,
  renameResourceClass,
} from "./names.ts";
import { findProvider, findProviders } from "./provider-rows.ts";
import { writeReshape } from "./reshape.ts";
import { refuseUnderWay } from "./under-way.ts";
import { alterProvider, providerCreator, removeProvider } from "./write-providers.ts";
import { writesTogether } from "./write-together.ts";

/** The most allocation changes that one call sends to the database. */
const BATCH_MAX = 200;
/** The fewest changes that are sent while another batch is under way. A call costs as much as ten of its changes. */
const BESIDE_ITEMS_MIN = 12;

/**
 * The Placement API's access to one cell's database. Reads ask the database, so that each sees every write that was acknowledged before it,
 * through any process. Allocation changes and agents' writes to providers that arrive while others are under way share the next
 * transaction. The ledger answers each as if it had been alone. Throws `StoreError`.
 */
export function createPlacementStore(pool: Pool, ledger: Pick<Ledger, "applyAllocations">): PlacementStore {
  const newBatcher = (run: (batch: readonly AllocationChange[]) => Promise<readonly PlacementChangeOutcome[]>) =>
    new Batcher<AllocationChange, PlacementChangeOutcome>({
      run,
      maxItems: BATCH_MAX,
      concurrency: 2,
      besideItemsMin: BESIDE_ITEMS_MIN,
      maxQueued: 20_000,
    });
  // First claims are cheap in a batch of their own, and expensive in a batch with other changes.
  const claims = newBatcher((batch) => ledger.applyAllocations(batch));
  const changes = newBatcher(async (batch) => {
    const refusals = await refuseUnderWay(pool, batch);
    const free = batch.filter((_, index) => refusals[index] === null);
    const outcomes = free.length === 0 ? [] : [...(await ledger.applyAllocations(free))];
    return refusals.map((refusal) => refusal ?? outcomes.shift()!);
  });
  const together = writesTogether(pool);
  return throwStoreErrors({
    provider: (uuid) => findProvider(pool, uuid),
    providers: (filter) => findProviders(pool, filter),
    createProvider: providerCreator(pool, together),
    updateProvider: (uuid, change) => alterProvider(pool, uuid, change),
    deleteProvider: (uuid) => removeProvider(pool, uuid),

    inventories: (uuid) => readInventories(pool, uuid),
    setInventories: inventoryWriter(pool, together),
    putInventory: (uuid, expected, name, inventory, mode) => putInventory(pool, uuid, expected, name, inventory, mode),
    deleteInventory: (uuid, name) => removeInventory(pool, uuid, name),

    traits: (uuid) => readTraits(pool, uuid),
    setTraits: traitWriter(pool, together),
    aggregates: (uuid) => readAggregates(pool, uuid),
    setAggregates: aggregateWriter(pool, together),

    resourceClasses: () => readResourceClasses(pool),
    createResourceClass: (name) => createResourceClass(pool, name),
    renameResourceClass: (from, to) => renameResourceClass(pool, from, to),
    deleteResourceClass: (name) => deleteResourceClass(pool, name),
    allTraits: (filter) => readAllTraits(pool, filter.associated),
    createTrait: (name) => createTrait(pool, name),
    deleteTrait: (name) => removeTrait(pool, name),

    consumer: async (uuid) => (await readConsumers(pool, [uuid]))[0] ?? null,
    consumers: (uuids) => readConsumers(pool, uuids),
    allocationsOfProvider: (uuid) => readAllocationsOfProvider(pool, uuid),
    applyAllocations: (change) => (mayBeFirstClaim(change) ? claims : changes).submit(change),
    reshape: async (reshaping) => {
      const [refusal] = await refuseUnderWay(pool, [reshaping.change]);
      return refusal ? { kind: "refused", outcome: refusal } : writeReshape(pool, reshaping);
    },

    usagesOfProvider: (uuid) => readUsagesOfProvider(pool, uuid),
    usagesOfProject: (projectId, userId) => readUsagesOfProject(pool, projectId, userId),
  });
}

function throwStoreErrors(store: PlacementStore): PlacementStore {
  const operations = Object.entries(store).map(([name, ask]: [string, (...args: never[]) => Promise<unknown>]) => [
    name,
    (...args: never[]) => runStored(name, () => ask(...args)),
  ]);
  return Object.fromEntries(operations) as PlacementStore;
}
