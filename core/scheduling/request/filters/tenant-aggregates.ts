import type { RequestAggregate } from "../request-context.ts";
import type { RequestFilter } from "../translation-rule.ts";

/** Also `filter_tenant_id2` and the like. */
const PREFIX = "filter_tenant_id";

/** Members of an aggregate that names the project; a project that none names goes anywhere, unless the setting says nowhere. */
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
