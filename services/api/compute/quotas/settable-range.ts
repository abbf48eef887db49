import {
  limitsOfProject,
  type QuotaLimits,
  type QuotaResource,
  type SetLimits,
} from "../../../../core/stores/api/quota-limits.ts";
import type { QuotaScope } from "../../../../core/stores/api/quota-store.ts";
import { badRequest } from "../../http/fault.ts";

/**
 * Refuses limits below the use or below the sum of the limits of the project's users, and limits of a user above the rest of the project's. The
 * flag `force` skips this. Source: Nova's `get_settable_quotas`.
 */
export function refuseOutOfRange(
  wanted: Partial<QuotaLimits>,
  of: {
    readonly set: SetLimits;
    readonly defaults: QuotaLimits;
    readonly scope: QuotaScope;
    readonly used: Partial<Record<QuotaResource, number>>;
  },
): void {
  const project = limitsOfProject(of.set, of.defaults);
  const { userId } = of.scope;
  for (const [name, limit] of Object.entries(wanted)) {
    const resource = name as QuotaResource;
    const given = [...of.set.ofUsers.values()].reduce((sum, user) => sum + (user[resource] ?? 0), 0);
    const used = of.used[resource] ?? 0;
    const isLimited = project[resource] >= 0;
    const minimum = userId === null ? Math.max(isLimited ? given : -1, used) : used;
    const own = userId === null ? 0 : (of.set.ofUsers.get(userId)?.[resource] ?? 0);
    const left = project[resource] - given;
    const isBound = userId !== null && isLimited && left >= 0 && own >= 0;
    if (orInfinity(limit) < minimum)
      throw badRequest(
        `Quota limit ${limit} for ${resource} must be greater than or equal to already used and reserved ${minimum}.`,
      );
    if (isBound && orInfinity(limit) > left + own)
      throw badRequest(`Quota limit ${limit} for ${resource} must be less than or equal to ${left + own}.`);
  }
}

function orInfinity(limit: number): number {
  return limit === -1 ? Number.POSITIVE_INFINITY : limit;
}
