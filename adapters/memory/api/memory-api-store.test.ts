import { apiStoreContract } from "../../../test/contract/api-store.contract.ts";
import { MemoryApiStore } from "./memory-api-store.ts";

apiStoreContract("memory", async () => {
  // Every look at it is a millisecond later.
  let nowMs = 1_000_000;
  const clock = { now: () => ++nowMs, monotonic: () => nowMs, setTimer: () => ({ cancel: () => undefined }) };
  const store = new MemoryApiStore({ clock });
  return { store, close: () => store.close() };
});
