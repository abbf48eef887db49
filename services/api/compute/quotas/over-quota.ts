import type {
  QuotaExcess,
  QuotaLimits,
  ServerAmounts,
  ServerResource,
} from "../../../../core/stores/api/quota-limits.ts";
import { Fault } from "../../http/fault.ts";
import { UNIFIED_NAMES } from "./unified-names.ts";

/** Returns the 403 of a call whose servers exceed a quota. `asked` has the requested amounts by resource. Source: Nova's `TooManyInstances`. */
export function overQuota(excess: QuotaExcess, asked: Readonly<Record<ServerResource, number | string>>): Fault {
  const { overs, used, limits } = excess;
  const listed = (values: Readonly<Record<ServerResource, number | string>>) =>
    overs.map((resource) => values[resource]).join(", ");
  const names = overs.join(", ");
  return new Fault(
    403,
    `Quota exceeded for ${names}: Requested ${listed(asked)}, but already used ${listed(used)} of ${listed(limits)} ${names}`,
  );
}

/** Returns the same 403 where Keystone has the limits. Source: oslo.limit's `ProjectOverLimit`, whose text Nova passes on. */
export function overUnifiedLimit(excess: QuotaExcess, asked: ServerAmounts, projectId: string): Fault {
  const { overs, used, limits, classes } = excess;
  const each = [
    ...overs.map((one) => ({ name: UNIFIED_NAMES[one], limit: limits[one], used: used[one], delta: asked[one] })),
    ...classes.map((one) => ({ ...one, name: `class:${one.name}`, delta: asked.classes?.get(one.name) ?? 0 })),
  ]
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(
      ({ name, limit, used: usage, delta }) =>
        `Resource ${name} is over limit of ${limit} due to current usage ${usage} and delta ${delta}`,
    );
  return new Fault(403, `Project ${projectId} is over a limit for [${each.join(", ")}]`);
}

/** Refuses more items of metadata than the quota allows. */
export function refuseManyItems(metadata: Readonly<Record<string, string>>, limits: QuotaLimits): void {
  const fault = explainManyItems(metadata, limits);
  if (fault !== null) throw fault;
}

/** Returns the 403 for more items of metadata than the quota allows, or null. */
export function explainManyItems(metadata: Readonly<Record<string, string>>, limits: QuotaLimits): Fault | null {
  const allowed = limits.metadata_items;
  const isTooMany = allowed >= 0 && Object.keys(metadata).length > allowed;
  return isTooMany ? new Fault(403, `Maximum number of metadata items exceeds ${allowed}`) : null;
}
