import type { MembersOnHost } from "../tasks/group-rule.ts";

const NO_MEMBERS: ReadonlyMap<string, MembersOnHost> = new Map();
const NO_HOSTS: readonly string[] = [];

/** A server of a group with the hosts on which it counts. */
interface Member {
  readonly group: string;
  /** The hosts, each listed once. */
  readonly hosts: readonly string[];
  readonly settled: boolean;
}

/** How many servers of each group every host has. Homes and both ends of moves count alike. */
export class GroupPlaces {
  readonly #members = new Map<string, Member>();
  /** By group, then by host. */
  readonly #groups = new Map<string, Map<string, MembersOnHost>>();

  membersOf(group: string): ReadonlyMap<string, MembersOnHost> {
    return this.#groups.get(group) ?? NO_MEMBERS;
  }

  /** The servers of the group that may soon leave a host. Cost: one comparison for each server of any group. */
  unsettledOf(group: string): readonly string[] {
    const unsettled: string[] = [];
    for (const [uuid, member] of this.#members) if (member.group === group && !member.settled) unsettled.push(uuid);
    return unsettled;
  }

  hostsOf(serverUuid: string): readonly string[] {
    return this.#members.get(serverUuid)?.hosts ?? NO_HOSTS;
  }

  /** Replaces the known facts of the server; null means that it has no group or no host. Returns the hosts whose counts changed. */
  set(serverUuid: string, member: Member | null): readonly string[] {
    const before = this.#members.get(serverUuid) ?? null;
    if (isSame(before, member)) return NO_HOSTS;
    if (before !== null) for (const host of before.hosts) this.#count(before, host, -1);
    if (member === null) this.#members.delete(serverUuid);
    else this.#members.set(serverUuid, member);
    if (member !== null) for (const host of member.hosts) this.#count(member, host, 1);
    return [...(before?.hosts ?? NO_HOSTS), ...(member?.hosts ?? NO_HOSTS)];
  }

  clear(): void {
    this.#members.clear();
    this.#groups.clear();
  }

  #count({ group, settled }: Member, host: string, change: 1 | -1): void {
    const hosts = this.#groups.get(group) ?? new Map<string, MembersOnHost>();
    const before = hosts.get(host) ?? { servers: 0, settled: 0 };
    const servers = before.servers + change;
    if (servers > 0) hosts.set(host, { servers, settled: before.settled + (settled ? change : 0) });
    else hosts.delete(host);
    if (hosts.size > 0) this.#groups.set(group, hosts);
    else this.#groups.delete(group);
  }
}

function isSame(one: Member | null, other: Member | null): boolean {
  if (one === null || other === null) return one === other;
  if (one.group !== other.group || one.settled !== other.settled || one.hosts.length !== other.hosts.length)
    return false;
  return one.hosts.every((host, at) => host === other.hosts[at]);
}
