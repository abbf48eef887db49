import { systemClock } from "../../../runtime/clock.ts";
import { sharedVolumesContract } from "../../../test/contract/shared-volumes.contract.ts";
import { volumeStoreContract } from "../../../test/contract/volume-store.contract.ts";
import { MemoryApiStore } from "./memory-api-store.ts";
import { MemoryVolumeStore } from "./memory-volume-store.ts";

async function makeStores() {
  const requests = new MemoryApiStore({ clock: systemClock });
  return { store: new MemoryVolumeStore(systemClock, { requests }), requests };
}

volumeStoreContract("memory", makeStores);
sharedVolumesContract("memory", async () => (await makeStores()).store);
