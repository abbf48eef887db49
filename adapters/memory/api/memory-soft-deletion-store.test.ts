import { softDeletionStoreContract } from "../../../test/contract/soft-deletion-store.contract.ts";
import { MemoryApiStore } from "./memory-api-store.ts";
import { MemoryQuotaStore } from "./memory-quota-store.ts";
import { MemorySoftDeletionStore } from "./memory-soft-deletion-store.ts";

softDeletionStoreContract("memory", async () => {
  let nowMs = 1_000_000;
  const clock = { now: () => nowMs, monotonic: () => 0, setTimer: () => ({ cancel: () => undefined }) };
  const quotas = new MemoryQuotaStore({ clock });
  const requests = new MemoryApiStore({ clock, quotas });
  const store = new MemorySoftDeletionStore(clock, { requests, quotas });
  const pass = async (ms: number) => {
    nowMs += ms;
  };
  return { stores: [store, store], requests, quotas, pass };
});
