import { systemClock } from "../../../runtime/clock.ts";
import { portStoreContract } from "../../../test/contract/port-store.contract.ts";
import { MemoryPortStore } from "./memory-port-store.ts";

portStoreContract("memory", async () => new MemoryPortStore(systemClock));
