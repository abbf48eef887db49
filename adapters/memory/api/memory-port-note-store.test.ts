import { systemClock } from "../../../runtime/clock.ts";
import { portNoteStoreContract } from "../../../test/contract/port-note-store.contract.ts";
import { MemoryApiStore } from "./memory-api-store.ts";
import { MemoryPortNoteStore } from "./memory-port-note-store.ts";

portNoteStoreContract("memory", async () => {
  const requests = new MemoryApiStore({ clock: systemClock });
  return { store: new MemoryPortNoteStore(systemClock, { requests }), requests };
});
