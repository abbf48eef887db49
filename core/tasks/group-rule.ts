import type { ServerGroupMembership } from "../../proto/gen/berth/shared.ts";

/** The policies of server groups, as Nova names them. The soft ones only affect weighing. */
export const SERVER_GROUP_POLICIES = ["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"] as const;
export type ServerGroupPolicy = (typeof SERVER_GROUP_POLICIES)[number];

/** The refusal of a host by its server group's policy. */
export interface GroupConflict {
  readonly kind: "group-conflict";
  /**
   * For `affinity`, `hosts` are the only ones where the server may go. For `anti-affinity`, they are the ones that have no place left for
   * the group.
   */
  readonly policy: "affinity" | "anti-affinity";
  /** Host names, sorted. */
  readonly hosts: readonly string[];
  /** True when only servers in motion cause the conflict. Once they have arrived or gone back, the host may be free. */
  readonly inFlight: boolean;
}

/** How many other servers of a group one host has. A server counts when it is at home there, or has an open move from or to the host. */
export interface MembersOnHost {
  readonly servers: number;
  /** How many of these servers are not about to leave. */
  readonly settled: number;
}

/**
 * Task states in which a server may soon leave a host. Actions on the host itself are not listed, nor is a move that waits for its
 * confirmation, since that may take days.
 */
export const LEAVING_STATES: readonly string[] = [
  "deleting",
  "migrating",
  "rebuild_spawning",
  "rebuilding",
  "resize_confirming",
  "resize_finish",
  "resize_migrated",
  "resize_migrating",
  "resize_prep",
  "resize_reverting",
  "shelving_offloading",
  "spawning",
  "unshelving",
];
const LEAVING: ReadonlySet<string> = new Set(LEAVING_STATES);

/** Whether a server of a group stays where it is, as far as its row says. A server that is being built may hop to another host. */
export function isSettled({
  status,
  taskState,
}: {
  readonly status: string;
  readonly taskState: string | null;
}): boolean {
  return status !== "BUILD" && (taskState === null || !LEAVING.has(taskState));
}

/** The distinct hosts that count for a server's group: its home, and both ends of its open move. */
export function placesOf(
  home: string | null,
  move: { readonly sourceHost: string | null; readonly destHost: string } | null,
): readonly string[] {
  const places = [home, move?.sourceHost, move?.destHost].filter((host) => host != null && host !== "");
  return [...new Set(places as string[])];
}

/** Whether the claims of this group's servers must be checked against each other. */
export function isHardGroup(group: ServerGroupMembership | undefined): group is ServerGroupMembership {
  return group?.policy === "affinity" || group?.policy === "anti-affinity";
}

/**
 * Decides whether a server of the group may go to the host, and returns null when it may. `members` counts the group's other servers on
 * each host that has any.
 *
 * Source: server group policies of the Compute API. Only anti-affinity has the rule `max_server_per_host`.
 */
export function checkGroup(
  group: ServerGroupMembership,
  host: string,
  members: ReadonlyMap<string, MembersOnHost>,
): GroupConflict | null {
  switch (group.policy) {
    case "affinity": {
      const elsewhere = [...members].filter(([name]) => name !== host);
      if (elsewhere.length === 0) return null;
      const inFlight = elsewhere.every(([, { settled }]) => settled === 0);
      return { kind: "group-conflict", policy: "affinity", hosts: [...members.keys()].sort(), inFlight };
    }
    case "anti-affinity": {
      const most = serversPerHostMax(group);
      const here = members.get(host);
      if (here === undefined || here.servers < most) return null;
      const full = [...members].filter(([, { servers }]) => servers >= most).map(([name]) => name);
      return { kind: "group-conflict", policy: "anti-affinity", hosts: full.sort(), inFlight: here.settled < most };
    }
    default:
      return null;
  }
}

/** Maximum number of servers of an anti-affinity group that one host may have. */
export function serversPerHostMax(group: ServerGroupMembership): number {
  return Math.max(1, group.maxServerPerHost);
}

/** Whether the answer to one of two claims of a batch depends on the other, so that they cannot be decided together. */
export function groupsEntangle(
  a: { readonly group: ServerGroupMembership | undefined; readonly host: string },
  b: { readonly group: ServerGroupMembership | undefined; readonly host: string },
): boolean {
  if (!isHardGroup(a.group) || a.group.uuid !== b.group?.uuid) return false;
  return a.group.policy === "affinity" ? a.host !== b.host : a.host === b.host;
}

/** Explains to a person why the group excludes a host. */
export function describeGroupConflict({ policy, hosts, inFlight }: GroupConflict): string {
  const why =
    policy === "affinity"
      ? `its server group must stay together on ${hosts.join(", ")}`
      : "its server group has no place left there";
  return inFlight ? `${why} as long as one of its servers is moving` : why;
}
