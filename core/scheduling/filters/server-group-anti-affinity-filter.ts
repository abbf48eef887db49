import { serversPerHostMax } from "../../cell/group-rule.ts";
import { FULL_FOR_NOW, FULL_OF_GROUP, othersOf } from "./group-members.ts";
import type { HostFilter } from "./host-filter.ts";

/**
 * Hosts with fewer servers of the request's anti-affinity group than may be on one, both ends of moves counted. Spares claims that are
 * pointless; the claim itself is what decides, since a view is always a little late. The server itself does not count (moves).
 */
export const serverGroupAntiAffinityFilter: HostFilter = {
  name: "ServerGroupAntiAffinityFilter",
  decidedBy: "request",
  bind({ uuid, group }, { facts }) {
    if (group?.policy !== "anti-affinity") return null;
    const most = serversPerHostMax(group);
    const members = othersOf(facts, group.uuid, uuid);
    if (members.size === 0) return null;
    return ({ name }) => {
      const here = members.get(name);
      if (here === undefined || here.servers < most) return null;
      return here.settled < most ? FULL_FOR_NOW : FULL_OF_GROUP;
    };
  },
};
