import { checkGroup } from "../../cell/group-rule.ts";
import { GROUP_ON_ITS_WAY, NOT_WITH_GROUP, othersOf } from "./group-members.ts";
import type { HostFilter } from "./host-filter.ts";

/**
 * The host that servers of the request's affinity group are on, as soon as there is one in the cell: another than the one that is
 * placed, which may move. While one of them is moved there is none: the group would be torn apart, wherever the move ends. The claim
 * decides, since a view is always a little late.
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
