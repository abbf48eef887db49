import type { ServerGroupMembership } from "../../proto/gen/berth/shared.ts";

/** The policies of server groups, as Nova names them. The soft ones only weigh. */
export const SERVER_GROUP_POLICIES = ["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"] as const;
export type ServerGroupPolicy = (typeof SERVER_GROUP_POLICIES)[number];

/** Hosts that a group's rule speaks of when it refuses one. */
export interface GroupConflict {
  readonly kind: "group-conflict";
  /** `affinity`: the only hosts where the server may go; `anti-affinity`: those that have no place left for the group. */
  readonly policy: "affinity" | "anti-affinity";
  /** By name. */
  readonly hosts: readonly string[];
  /** Only servers that are on their way stand against it: once they have arrived, or gone back, the host may be free. */
  readonly inFlight: boolean;
}

/** How many other servers of a group one host has: at home there, or with a move from or to it that has not ended. */
export interface MembersOnHost {
  readonly servers: number;
  /** Those of them that nothing is about to take elsewhere. */
  readonly settled: number;
}

/**
 * Task states in which a server may soon have one place fewer. Not among them: what is done to it on its host, and a move that waits for its
 * confirmation, which may take days.
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

/** Whether a server of a group stays where it is, as far as its row says. One that is being built may hop to another host. */
export function isSettled({
  status,
  taskState,
}: {
  readonly status: string;
  readonly taskState: string | null;
}): boolean {
  return status !== "BUILD" && (taskState === null || !LEAVING.has(taskState));
}

/** The hosts that count for a server's group: its home, and both ends of its move as long as that has not ended. Each once. */
export function placesOf(
  home: string | null,
  move: { readonly sourceHost: string | null; readonly destHost: string } | null,
): readonly string[] {
  const places = [home, move?.sourceHost, move?.destHost].filter((host) => host != null && host !== "");
  return [...new Set(places as string[])];
}

/** Whether claims of this group's servers have to be checked against each other. */
export function isHardGroup(group: ServerGroupMembership | undefined): group is ServerGroupMembership {
  return group?.policy === "affinity" || group?.policy === "anti-affinity";
}

/**
 * Whether a server of the group may go to the host: `null` - it may. `members`: how many other servers of the group each host has
 * that has any.
 *
 * Source: server group policies of the Compute API; `max_server_per_host` is a rule of anti-affinity alone.
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
export function describeGroupConflict({ policy, hosts, inFlight }: GroupConflict): string {
  const why =
    policy === "affinity"
      ? `its server group keeps together on ${hosts.join(", ")}`
      : "its server group has no place left there";
  return inFlight ? `${why} as long as one of its servers is on its way` : why;
}
