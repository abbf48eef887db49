import type { RefusalCount } from "../../candidates/refusal.ts";
import type { MembersOnHost } from "../../tasks/group-rule.ts";
import type { CellFacts } from "../host-facts.ts";

/** The reasons for which server groups refuse a host: for good, or while one of the group's servers is still moving or being built. */
export const NOT_WITH_GROUP = "not where the affinity group is";
export const GROUP_ON_ITS_WAY = "not where the affinity group is, which is moving";
export const FULL_OF_GROUP = "has as many servers of the anti-affinity group as allowed";
export const FULL_FOR_NOW = "has as many servers of the anti-affinity group as allowed, one of them moving";

/** Whether a refused host may become available once servers of the request's group have finished moving or building. */
export function awaitsGroup(refusals: readonly RefusalCount[]): boolean {
  return refusals.some(
    ({ refusal }) => refusal.kind === "filtered" && (refusal.why === FULL_FOR_NOW || refusal.why === GROUP_ON_ITS_WAY),
  );
}

/** By host: the number of servers of a group, without the server that is being placed. */
export function othersOf(facts: CellFacts, group: string, serverUuid: string): ReadonlyMap<string, MembersOnHost> {
  const members = facts.membersOf(group);
  const own = facts.placesOf(serverUuid);
  if (own.length === 0) return members;
  const others = new Map(members);
  for (const host of own) {
    const here = others.get(host);
    if (here === undefined) continue;
    // The server itself counted as settled, because its own operation has not begun yet.
    if (here.servers > 1) others.set(host, { servers: here.servers - 1, settled: Math.max(0, here.settled - 1) });
    else others.delete(host);
  }
  return others;
}
