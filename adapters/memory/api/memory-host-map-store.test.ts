import { hostMapStoreContract } from "../../../test/contract/host-map-store.contract.ts";
import { MemoryHostMapStore } from "./memory-host-map-store.ts";

hostMapStoreContract("memory", async () => new MemoryHostMapStore());
