import { valuesOf } from "./aggregate-metadata.ts";
import type { HostFilter } from "./host-filter.ts";

const KEY = "instance_type";

/** Passes hosts whose aggregates have no `instance_type`, or list the flavor's name in it. */
export const aggregateTypeAffinityFilter: HostFilter = {
  name: "AggregateTypeAffinityFilter",
  decidedBy: "kind",
  reads: ["flavor"],
  bind({ flavor }, { facts }) {
    if (!facts.hasMetadata(KEY)) return null;
    const name = flavor?.name ?? "";
    return ({ aggregates }) => {
      const lists = valuesOf(aggregates, KEY);
      const listed = lists.some((list) => list.split(",").some((item) => item.trim() === name));
      return lists.length === 0 || listed ? null : "in an aggregate for other flavors";
    };
  },
};
