import type { QuotaStore } from "../../../../core/stores/api/quota-store.ts";
import type { QuotaSets } from "./quota-deps.ts";
import type { UnifiedLimits } from "./unified-limits.ts";
import { UnifiedQuotaSets } from "./unified-quota-sets.ts";

/** The quota sets and classes that operators keep in the API database, or those that Keystone's limits make up. */
export function quotaSetsOf(store: QuotaStore, unified: UnifiedLimits | null): QuotaSets {
  if (unified !== null) return new UnifiedQuotaSets(unified, store);
  return {
    isChangeable: true,
    limits: (projectId) => store.limits(projectId),
    setLimits: (scope, limits) => store.setLimits(scope, limits),
    forgetLimits: (scope) => store.forgetLimits(scope),
    classLimits: (className) => store.classLimits(className),
    setClassLimits: (className, limits) => store.setClassLimits(className, limits),
    usage: (projectId) => store.usage(projectId),
  };
}
