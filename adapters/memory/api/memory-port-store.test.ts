import { systemClock } from "../../../runtime/clock.ts";
import { portStoreContract } from "../../../test/contract/port-store.contract.ts";
import { MemoryApiStore } from "./memory-api-store.ts";
import { MemoryPortStore } from "./memory-port-store.ts";

portStoreContract("memory", async () => {
  const requests = new MemoryApiStore({ clock: systemClock });
  return { store: new MemoryPortStore(systemClock, { requests }), requests };
});
