import { keypairStoreContract } from "../../../test/contract/keypair-store.contract.ts";
import { MemoryKeypairStore } from "./memory-keypair-store.ts";

keypairStoreContract("memory", async () => ({ store: new MemoryKeypairStore(), close: async () => undefined }));
