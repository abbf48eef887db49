import { ManualClock } from "../../runtime/manual-clock.ts";
import { aggregateStoreContract } from "../../test/contract/aggregate-store.contract.ts";
import { MemoryAggregateStore } from "./memory-aggregate-store.ts";

aggregateStoreContract("memory", async () => new MemoryAggregateStore({ clock: new ManualClock() }));
