import { consoleTokenStoreContract } from "../../../test/contract/console-token-store.contract.ts";
import { MemoryConsoleTokenStore } from "./memory-console-token-store.ts";

consoleTokenStoreContract("memory", async () => new MemoryConsoleTokenStore());
