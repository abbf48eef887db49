import { apiStoreContract } from "../../../test/contract/api-store.contract.ts";
import { MemoryApiStore } from "./memory-api-store.ts";

apiStoreContract("memory", async () => {
  // The clock advances by a millisecond whenever it is read.
  let nowMs = 1_000_000;
  const clock = { now: () => ++nowMs, monotonic: () => nowMs, setTimer: () => ({ cancel: () => undefined }) };
  const store = new MemoryApiStore({ clock });
  return { store, close: () => store.close() };
});
