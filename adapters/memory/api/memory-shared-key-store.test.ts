import { sharedKeyStoreContract } from "../../../test/contract/shared-key-store.contract.ts";
import { MemorySharedKeyStore } from "./memory-shared-key-store.ts";

sharedKeyStoreContract("memory", async () => {
  const store = new MemorySharedKeyStore();
  return [store, store];
});
