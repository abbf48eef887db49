import type { MemoryCellStore } from "../adapters/memory/cell/memory-cell-store.ts";
import { overriding } from "../runtime/overriding.ts";

/** Bugs in what a cell says of guests that hosts may have of servers that are gone from there. */
export const LEFT_GUEST_MUTATIONS = [
  {
    name: "left-guests-ignored",
    about:
      "what a server had is given back although a host has a guest of it in quarantine or that was not removed, or was not compared since a restore",
    profile: "volumes-restored",
    cellStore: (store: MemoryCellStore) => overriding(store, { guestsLeft: async (uuids) => uuids.map(() => false) }),
  },
] as const;
