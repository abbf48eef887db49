import { ManualClock } from "../../../runtime/manual-clock.ts";
import { quarantineContract } from "../../../test/contract/quarantine.contract.ts";
import { MemoryCellStore } from "./memory-cell-store.ts";
import { MemoryLedger } from "./memory-ledger.ts";

quarantineContract("memory", async () => {
  const ledger = new MemoryLedger();
  const cell = new MemoryCellStore({ clock: new ManualClock(), ledger });
  return { ledger, cell, admin: cell.hostAdmin(), quarantine: cell.quarantine, close: async () => undefined };
});
