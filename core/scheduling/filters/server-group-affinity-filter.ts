import { checkGroup } from "../../tasks/group-rule.ts";
import { GROUP_ON_ITS_WAY, NOT_WITH_GROUP, othersOf } from "./group-members.ts";
import type { HostFilter } from "./host-filter.ts";

/**
 * Passes only the host of the other servers of the request's affinity group, once the cell has such a server. While one of them is being
 * moved, no host passes, because the group would be torn apart wherever the move ends. The claim decides in the end, since a view is always
 * slightly behind.
 */
export const serverGroupAffinityFilter: HostFilter = {
  name: "ServerGroupAffinityFilter",
  decidedBy: "request",
  bind({ uuid, group }, { facts }) {
    if (group?.policy !== "affinity") return null;
    const members = othersOf(facts, group.uuid, uuid);
    if (members.size === 0) return null;
    return ({ name }) => {
      const conflict = checkGroup(group, name, members);
      return conflict === null ? null : conflict.inFlight ? GROUP_ON_ITS_WAY : NOT_WITH_GROUP;
    };
  },
};
