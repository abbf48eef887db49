import { ManualClock } from "../../../runtime/manual-clock.ts";
import { aggregateStoreContract } from "../../../test/contract/aggregate-store.contract.ts";
import { ratioStoreContract } from "../../../test/contract/ratio-store.contract.ts";
import { MemoryAggregateStore } from "./memory-aggregate-store.ts";

ratioStoreContract("memory", async () => {
  const store = new MemoryAggregateStore({ clock: new ManualClock() });
  return { aggregates: store, ratios: store };
});
aggregateStoreContract("memory", async () => new MemoryAggregateStore({ clock: new ManualClock() }));
