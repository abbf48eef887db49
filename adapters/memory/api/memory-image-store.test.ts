import { imageStoreContract } from "../../../test/contract/image-store.contract.ts";
import { MemoryImageStore } from "./memory-image-store.ts";

imageStoreContract("memory", async () => new MemoryImageStore());
