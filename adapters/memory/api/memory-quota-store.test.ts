import { quotaStoreContract } from "../../../test/contract/quota-store.contract.ts";
import { MemoryApiStore } from "./memory-api-store.ts";
import { MemoryQuotaStore } from "./memory-quota-store.ts";

quotaStoreContract("memory", async () => {
  const clock = { now: () => 1_000_000, monotonic: () => 0, setTimer: () => ({ cancel: () => undefined }) };
  const store = new MemoryQuotaStore({ clock });
  const requests = new MemoryApiStore({ clock, quotas: store });
  return { store, requests: [requests, requests], close: async () => undefined };
});
