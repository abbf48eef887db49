import { ZONE_KEY } from "../../aggregate-record.ts";
import type { RequestFilter } from "../translation-rule.ts";

/**
 * Admits members of the zone's aggregates. For the default zone it admits hosts that are in no other zone. A zone that does not exist has
 * no hosts.
 */
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
