import { classLimitsContract } from "../../../test/contract/class-limits.contract.ts";
import { quotaStoreContract } from "../../../test/contract/quota-store.contract.ts";
import { MemoryApiStore } from "./memory-api-store.ts";
import { MemoryQuotaStore } from "./memory-quota-store.ts";

const makeSubject = async () => {
  const clock = { now: () => 1_000_000, monotonic: () => 0, setTimer: () => ({ cancel: () => undefined }) };
  const store = new MemoryQuotaStore({ clock });
  const requests = new MemoryApiStore({ clock, quotas: store });
  return { store, requests: [requests, requests] as const, close: async () => undefined };
};

quotaStoreContract("memory", makeSubject);
classLimitsContract("memory", makeSubject);
