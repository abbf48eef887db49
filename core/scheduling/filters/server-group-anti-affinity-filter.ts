import type { HostFilter } from "./host-filter.ts";

/**
 * Hosts with fewer servers of the request's anti-affinity group than may be on one. Spares claims that are pointless; the claim
 * itself is what decides, since a view is always a little late. A host that has the server itself already passes (moves).
 */
export const serverGroupAntiAffinityFilter: HostFilter = {
  name: "ServerGroupAntiAffinityFilter",
  decidedBy: "request",
  bind({ uuid, group }, { facts }) {
    if (group?.policy !== "anti-affinity") return null;
    const most = Math.max(1, group.maxServerPerHost);
    const members = facts.membersOf(group.uuid);
    if (members.size === 0) return null;
    return (host) => {
      if ((members.get(host.name) ?? 0) < most || host.servers.has(uuid)) return null;
      return "has as many servers of the anti-affinity group as it may";
    };
  },
};
