import { metadataOf } from "./aggregate-metadata.ts";
import type { FilteredCell, HostFilter } from "./host-filter.ts";

/** The prefix also matches `filter_tenant_id2` and so on, since one value is too short for many projects. */
const PREFIX = "filter_tenant_id";

/** Reserves hosts in aggregates that name projects for those projects. Other hosts pass for every project. */
export const aggregateMultiTenancyIsolation: HostFilter = {
  name: "AggregateMultiTenancyIsolation",
  decidedBy: "kind",
  reads: ["project"],
  bind({ projectId }, { facts }) {
    if (!namesProjects(facts)) return null;
    return ({ aggregates }) => {
      let restricted = false;
      for (const [key, projects] of metadataOf(aggregates)) {
        if (!key.startsWith(PREFIX)) continue;
        if (projects.has(projectId)) return null;
        restricted = true;
      }
      return restricted ? "reserved for other projects" : null;
    };
  },
};

function namesProjects(facts: FilteredCell["facts"]): boolean {
  for (const key of facts.metadataKeys()) if (key.startsWith(PREFIX)) return true;
  return false;
}
