import { systemClock } from "../../runtime/clock.ts";
import { softStateContract } from "../../test/contract/soft-state.contract.ts";
import { MemorySoftState } from "./memory-soft-state.ts";

let shared: MemorySoftState | undefined;
softStateContract("memory", () => ({
  connect({ fadeMs }) {
    shared ??= new MemorySoftState(systemClock, { fadeMs });
    return shared;
  },
  async reset() {
    shared = undefined;
  },
}));
