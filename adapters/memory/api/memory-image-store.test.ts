import { systemClock } from "../../../runtime/clock.ts";
import { imageStoreContract } from "../../../test/contract/image-store.contract.ts";
import { MemoryApiStore } from "./memory-api-store.ts";
import { MemoryImageStore } from "./memory-image-store.ts";

imageStoreContract("memory", async () => {
  const requests = new MemoryApiStore({ clock: systemClock });
  return { store: new MemoryImageStore(requests), requests };
});
