import { systemClock } from "../../../runtime/clock.ts";
import { volumeStoreContract } from "../../../test/contract/volume-store.contract.ts";
import { MemoryApiStore } from "./memory-api-store.ts";
import { MemoryVolumeStore } from "./memory-volume-store.ts";

volumeStoreContract("memory", async () => {
  const requests = new MemoryApiStore({ clock: systemClock });
  return { store: new MemoryVolumeStore(systemClock, { requests }), requests };
});
