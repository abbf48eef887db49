import type { HostBatch, RelativeWeigher } from "./weigher.ts";

/** Prefers hosts with more servers of the request's soft-affinity group (Nova's ServerGroupSoftAffinityWeigher). */
export const softAffinity: RelativeWeigher = {
  name: "soft_affinity",
  kind: "relative",
  reads: ["soft-group"],
  weigh: (batch, weights, offset) => weighMembers(batch, weights, { offset, policy: "soft-affinity", sign: 1 }),
};

/** Prefers hosts with fewer servers of the request's soft-anti-affinity group (Nova's ServerGroupSoftAntiAffinityWeigher). */
export const softAntiAffinity: RelativeWeigher = {
  name: "soft_anti_affinity",
  kind: "relative",
  reads: ["soft-group"],
  weigh: (batch, weights, offset) => weighMembers(batch, weights, { offset, policy: "soft-anti-affinity", sign: -1 }),
};

function weighMembers(
  { facts, spec, roots, count, request }: HostBatch,
  weights: Float64Array,
  { offset, policy, sign }: { readonly offset: number; readonly policy: string; readonly sign: 1 | -1 },
): boolean {
  if (!facts || spec?.group?.policy !== policy) return false;
  const members = facts.membersOf(spec.group.uuid);
  const { hosts } = request.view;
  for (let index = 0; index < count; index += 1) {
    weights[offset + index] = sign * (members.get(hosts.nameOf(roots[index]!) ?? "")?.servers ?? 0);
  }
  return true;
}
