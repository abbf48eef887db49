import { moveStoreContract } from "../../../test/contract/move-store.contract.ts";
import { MemoryMoveStore } from "./memory-move-store.ts";

moveStoreContract("memory", async () => {
  let nowMs = 1_000_000;
  return { store: new MemoryMoveStore({ now: () => ++nowMs }), close: async () => undefined };
});
