import { placesOf, serversPerHostMax } from "../tasks/group-rule.ts";
import type { AuditedGroup, CellReading } from "./facts.ts";
import type { Violation } from "./violation.ts";

interface Members {
  readonly group: AuditedGroup;
  /** The servers of each host that are at home there or have an open move from or to it. */
  readonly hosts: Map<string, string[]>;
}

/**
 * Checks the policies of hard server groups: a host has no more servers of an anti-affinity group than the group allows, and all servers of
 * an affinity group are on one host. An open move counts at both of its ends, so the only server of an affinity group may have two hosts.
 * An affinity group lives in one cell. Hosts of an anti-affinity group are counted in each cell separately.
 */
export function checkGroups(facts: Pick<CellReading, "cell" | "servers" | "moves">): Violation[] {
  const moves = new Map(facts.moves.filter(({ inFlight }) => inFlight).map((move) => [move.serverUuid, move]));
  const groups = new Map<string, Members>();
  for (const { uuid, status, host, group } of facts.servers) {
    if (group === null || status === "DELETED") continue;
    const members = groups.get(group.uuid) ?? { group, hosts: new Map<string, string[]>() };
    groups.set(group.uuid, members);
    for (const place of placesOf(host, moves.get(uuid) ?? null)) {
      members.hosts.set(place, [...(members.hosts.get(place) ?? []), uuid]);
    }
  }
  return [...groups.values()].flatMap((members) =>
    members.group.policy === "affinity" ? apartOf(facts.cell, members) : crowdedOf(facts.cell, members),
  );
}

function crowdedOf(cell: string, { group, hosts }: Members): Violation[] {
  const most = serversPerHostMax(group);
  return [...hosts]
    .filter(([, servers]) => servers.length > most)
    .map(([host, servers]) => ({
      law: "groups" as const,
      what: "an anti-affinity group has too many servers on one host",
      where: `cell ${cell}, host ${host}, server group ${group.uuid}`,
      proof: `${servers.length} of at most ${most}: ${[...servers].sort().join(", ")}`,
    }));
}

function apartOf(cell: string, { group, hosts }: Members): Violation[] {
  const servers = new Set([...hosts.values()].flat());
  if (hosts.size < 2 || servers.size < 2) return [];
  const proof = [...hosts].map(([host, there]) => `${[...there].sort().join(", ")} on ${host}`).sort();
  return [
    {
      law: "groups",
      what: "an affinity group is on several hosts",
      where: `cell ${cell}, server group ${group.uuid}`,
      proof: proof.join("; "),
    },
  ];
}
