import { ZONE_KEY } from "../../../cell/aggregate-store.ts";
import type { RequestFilter } from "../translation-rule.ts";

/** Members of the zone's aggregates. The default zone: members of no other zone's. A zone that there is not has no hosts. */
export const availabilityZone: RequestFilter = ({ availabilityZone: zone }, draft, { aggregates, settings }) => {
  if (zone === "") return null;
  const zones = aggregates.filter(({ metadata }) => metadata.has(ZONE_KEY));
  if (zone !== settings.defaultAvailabilityZone) {
    draft.requireAggregates(zones.filter(({ metadata }) => metadata.get(ZONE_KEY) === zone).map(({ uuid }) => uuid));
    return null;
  }
  draft.forbidAggregates(zones.filter(({ metadata }) => metadata.get(ZONE_KEY) !== zone).map(({ uuid }) => uuid));
  return null;
};
