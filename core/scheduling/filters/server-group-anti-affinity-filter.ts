import { serversPerHostMax } from "../../tasks/group-rule.ts";
import { FULL_FOR_NOW, FULL_OF_GROUP, othersOf } from "./group-members.ts";
import type { HostFilter } from "./host-filter.ts";

/**
 * Passes hosts with fewer servers of the request's anti-affinity group than one host may have, with both ends of moves counted. The server
 * itself, which may be moving, does not count. The filter avoids pointless claims, but the claim itself decides, since a view is always
 * slightly behind.
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
