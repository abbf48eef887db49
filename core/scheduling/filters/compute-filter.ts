import { HOST_DISABLED, HOST_UP } from "../../ledger/view-hosts.ts";
import type { HostFilter } from "./host-filter.ts";

/** Passes hosts whose agent reports and that no operator has disabled. */
export const computeFilter: HostFilter = {
  name: "ComputeFilter",
  decidedBy: "kind",
  reads: [],
  isForAllCells: true,
  isPrefilter: true,
  bind(_, { view }) {
    return ({ root }) => {
      const state = view.hosts.state[root] ?? 0;
      if ((state & HOST_UP) === 0) return "down";
      return (state & HOST_DISABLED) === 0 ? null : "disabled";
    };
  },
};
