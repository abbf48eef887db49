import { settingsStoreContract } from "../../../test/contract/settings-store.contract.ts";
import { MemorySettingsStore } from "./memory-settings-store.ts";

settingsStoreContract("memory", async () => new MemorySettingsStore());
