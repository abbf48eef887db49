import type { HostFilter } from "./host-filter.ts";

/**
 * The hosts that servers of the request's affinity group are on, as soon as there is one in the cell: another than the one that is
 * placed, which may move. The claim decides, since a view is always a little late.
 */
export const serverGroupAffinityFilter: HostFilter = {
  name: "ServerGroupAffinityFilter",
  decidedBy: "request",
  bind({ uuid, group }, { facts }) {
    if (group?.policy !== "affinity") return null;
    const members = facts.membersOf(group.uuid);
    const own = facts.homeOf(uuid);
    const isAlone = members.size === 1 && own !== undefined && members.get(own) === 1;
    if (members.size === 0 || isAlone) return null;
    return ({ name }) => {
      const others = (members.get(name) ?? 0) - (name === own ? 1 : 0);
      return others > 0 ? null : "not where the affinity group is";
    };
  },
};
