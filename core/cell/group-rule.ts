import type { ServerGroupMembership } from "../../proto/gen/berth/shared.ts";

/** The policies of server groups, as Nova names them. The soft ones only weigh. */
export const GROUP_POLICIES = ["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"] as const;
export type GroupPolicy = (typeof GROUP_POLICIES)[number];

/** Hosts that a group's rule speaks of when it refuses one. */
export interface GroupConflict {
  readonly kind: "group-conflict";
  /** `affinity`: the only hosts where the server may go; `anti-affinity`: those that have no place left for the group. */
  readonly policy: "affinity" | "anti-affinity";
  /** By name. */
  readonly hosts: readonly string[];
}

/** Whether claims of this group's servers have to be checked against each other. */
export function isHardGroup(group: ServerGroupMembership | undefined): group is ServerGroupMembership {
  return group?.policy === "affinity" || group?.policy === "anti-affinity";
}

/**
 * Whether a server of the group may go to the host: `null` - it may. `members`: how many other servers of the group each host has
 * that has any; a server that is on its way to a host counts, one that holds nothing does not.
 *
 * Source: server group policies of the Compute API; `max_server_per_host` is a rule of anti-affinity alone.
 */
export function checkGroup(
  group: ServerGroupMembership,
  host: string,
  members: ReadonlyMap<string, number>,
): GroupConflict | null {
  switch (group.policy) {
    case "affinity": {
      const hosts = [...members.keys()].sort();
      return hosts.every((name) => name === host) ? null : { kind: "group-conflict", policy: "affinity", hosts };
    }
    case "anti-affinity": {
      const most = serversPerHostMax(group);
      if ((members.get(host) ?? 0) < most) return null;
      const hosts = [...members].filter(([, count]) => count >= most).map(([name]) => name);
      return { kind: "group-conflict", policy: "anti-affinity", hosts: hosts.sort() };
    }
    default:
      return null;
  }
}

/** Most servers of the group on one host, where its policy is anti-affinity. */
export function serversPerHostMax(group: ServerGroupMembership): number {
  return Math.max(1, group.maxServerPerHost);
}

/** Whether of two claims of one batch the second's answer depends on the first's, so that they cannot be decided together. */
export function groupsEntangle(
  a: { readonly group: ServerGroupMembership | undefined; readonly host: string },
  b: { readonly group: ServerGroupMembership | undefined; readonly host: string },
): boolean {
  if (!isHardGroup(a.group) || a.group.uuid !== b.group?.uuid) return false;
  return a.group.policy === "affinity" ? a.host !== b.host : a.host === b.host;
}

/** Why a host is out of the question, for a person. */
export function describeGroupConflict({ policy, hosts }: GroupConflict): string {
  return policy === "affinity"
    ? `its server group keeps together on ${hosts.join(", ")}`
    : "its server group has no place left there";
}
