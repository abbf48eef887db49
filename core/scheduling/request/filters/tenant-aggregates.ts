import type { RequestAggregate } from "../request-context.ts";
import type { RequestFilter } from "../translation-rule.ts";

/** The prefix also matches `filter_tenant_id2` and so on. */
const PREFIX = "filter_tenant_id";

/**
 * Admits members of the aggregates that name the project. A project that no aggregate names may go anywhere, unless the setting requires
 * such an aggregate.
 */
export const tenantAggregates: RequestFilter = ({ projectId }, draft, { aggregates, settings }) => {
  if (!settings.limitTenantsToPlacementAggregate) return null;
  const open = aggregates.filter((aggregate) => names(aggregate, projectId));
  if (open.length > 0) draft.requireAggregates(open.map(({ uuid }) => uuid));
  else if (settings.placementAggregateRequiredForTenants) return { kind: "no-aggregate-for-project", projectId };
  return null;
};

function names({ metadata }: RequestAggregate, projectId: string): boolean {
  for (const [key, value] of metadata) if (key.startsWith(PREFIX) && value === projectId) return true;
  return false;
}
