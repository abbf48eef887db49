import { metadataOf } from "./aggregate-metadata.ts";
import { satisfies } from "./extra-spec-operators.ts";
import type { HostFilter } from "./host-filter.ts";

const SCOPE = "aggregate_instance_extra_specs:";

/**
 * Passes hosts whose aggregates' metadata satisfies the flavor's extra specs, both those in the scope `aggregate_instance_extra_specs` and
 * those without a scope.
 */
export const aggregateInstanceExtraSpecsFilter: HostFilter = {
  name: "AggregateInstanceExtraSpecsFilter",
  decidedBy: "kind",
  reads: ["flavor"],
  isForAllCells: true,
  bind({ flavor }) {
    const required = Object.entries(flavor?.extraSpecs ?? {})
      .filter(([key]) => key.startsWith(SCOPE) || !key.includes(":"))
      .map(([key, requirement]) => [key.startsWith(SCOPE) ? key.slice(SCOPE.length) : key, requirement] as const);
    if (required.length === 0) return null;
    return ({ aggregates }) => {
      const metadata = metadataOf(aggregates);
      for (const [key, requirement] of required) {
        const values = metadata.get(key);
        if (!values) return "in no aggregate with the metadata that the flavor's extra specs require";
        if (![...values].some((value) => satisfies(value, requirement)))
          return "in aggregates with other values than the flavor's extra specs require";
      }
      return null;
    };
  },
};
