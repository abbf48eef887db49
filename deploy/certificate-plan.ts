import type { AgentPermit } from "../core/agent/agent-permit.ts";
import { agentOf, conductorNames, HUB_SERVERS } from "./cell-names.ts";

/** A certificate authority, and the members that get its certificates. Files are named after both. */
export interface AuthorityPlan {
  readonly name: string;
  readonly members: readonly MemberPlan[];
}

export type MemberPlan = ServerMember | AgentMember;

export interface ServerMember {
  /** The name of its files. No other member of any authority has the same. */
  readonly name: string;
  /** The host name or address for which its certificate is valid. */
  readonly host: string;
}

/** A compute agent. Its certificate is valid only for dialling conductors, as this agent and with these hosts. */
export interface AgentMember {
  readonly name: string;
  readonly permit: AgentPermit;
}

export interface AgentPlan {
  readonly cell: string;
  readonly id: string;
  /** Patterns, in which `*` stands for any characters. */
  readonly hosts: readonly string[];
}

/** Two certificates would have the same file name. */
export class SameFileError extends Error {
  constructor(file: string) {
    super(`two certificates would be called ${file}: give cells and hosts other names`);
    this.name = "SameFileError";
  }
}

/**
 * The certificates of a deployment. The servers of the API tier have an authority of their own. Each cell has one for its servers, its
 * conductors and its agent of the compose file, so a cell's certificate is worth nothing above it or in another cell. `more` lists further
 * host names or addresses, for which every cell's authority issues a certificate, too, named after both. `agents` lists further agents,
 * each of one cell, whose certificates are also named after both. Throws `SameFileError`.
 */
export function certificatePlan(
  cells: readonly string[],
  more: readonly string[] = [],
  agents: readonly AgentPlan[] = [],
): readonly AuthorityPlan[] {
  const plan = [
    { name: "above", members: ["postgres", "redis", ...HUB_SERVERS].map(itself) },
    ...cells.map((cell) => ({
      name: cell,
      members: [
        ...[`${cell}-postgres`, `${cell}-nats`, ...conductorNames(cell)].map(itself),
        agentMember(`${cell}-agent`, agentOf(cell)),
        ...more.map((host) => ({ name: `${cell}-${host}`, host })),
        ...agents.filter((agent) => agent.cell === cell).map((agent) => agentMember(`${cell}-${agent.id}`, agent)),
      ],
    })),
  ];
  const files = new Set<string>();
  for (const { certificate, key } of plan.flatMap(({ name, members }) => [
    authorityFiles(name),
    ...members.map((member) => certificateFiles(member.name)),
  ])) {
    for (const file of [certificate, key]) {
      if (files.has(file)) throw new SameFileError(file);
      files.add(file);
    }
  }
  return plan;
}

const itself = (host: string): ServerMember => ({ name: host, host });

function agentMember(name: string, { id, hosts }: Pick<AgentPlan, "id" | "hosts">): AgentMember {
  return { name, permit: { agentIds: [id], hosts } };
}

/** The file names of an authority, or of a member with its certificate. */
export function certificateFiles(name: string): { readonly certificate: string; readonly key: string } {
  return { certificate: `${name}.pem`, key: `${name}-key.pem` };
}

/** The name of an authority's own files. */
export function authorityFiles(name: string): { readonly certificate: string; readonly key: string } {
  return certificateFiles(`${name}-ca`);
}
