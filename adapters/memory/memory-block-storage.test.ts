import { randomUUID } from "node:crypto";
import { blockStorageContract } from "../../test/contract/block-storage.contract.ts";
import { MemoryBlockStorage } from "./memory-block-storage.ts";

blockStorageContract("in memory", async () => {
  const twin = new MemoryBlockStorage({ newId: randomUUID });
  return { storage: twin, twin };
});
