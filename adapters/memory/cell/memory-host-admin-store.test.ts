import { ManualClock } from "../../../runtime/manual-clock.ts";
import { hostAdminContract } from "../../../test/contract/host-admin.contract.ts";
import { MemoryCellStore } from "./memory-cell-store.ts";
import { MemoryLedger } from "./memory-ledger.ts";

hostAdminContract("memory", async () => {
  const ledger = new MemoryLedger();
  const clock = new ManualClock();
  const cell = new MemoryCellStore({ clock, ledger });
  return { ledger, cell, admin: cell.hostAdmin(), advance: () => clock.advance(1), close: async () => undefined };
});
