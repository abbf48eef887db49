import { compare } from "../../../../core/ledger/ledger-state.ts";
import type {
  NewSecurityGroupRule,
  OwnSecurityGroups,
  SecurityGroup,
  SecurityGroupFilter,
  SecurityGroupRefusal,
  SecurityGroupRule,
  SecurityGroups,
} from "../../../../core/stores/security-groups.ts";
import { askedBy, askNeighbour } from "../../http/ask-neighbour.ts";
import type { KnownCall } from "../../http/call.ts";
import { badRequest, conflict, Fault, notFound } from "../../http/fault.ts";
import { canonicalRule } from "./canonical-rule.ts";
import { DEFAULT_GROUP, defaultGroupId, defaultGroupOf } from "./default-security-group.ts";
import type { GroupedPorts } from "./grouped-ports.ts";

/** How often the ports of a server are read again that somebody else changes at the same time. */
const TRIES_MAX = 5;

export interface SecurityGroupParts {
  readonly groups: SecurityGroups;
  /** The same groups if they are those of Berth's own network; null for Neutron's. */
  readonly own: OwnSecurityGroups | null;
  readonly ports: GroupedPorts;
  /** Whether Neutron judges the callers by their tokens. */
  readonly sendsTokens: boolean;
}

type Values = { readonly name?: string; readonly description?: string };

/**
 * The calls about security groups: those of Neutron, or those of Berth's own network, where a project's default group is made when somebody first
 * asks for the project's groups. Refusals are thrown with Nova's statuses.
 */
export class SecurityGroupDesk {
  readonly #parts: SecurityGroupParts;

  constructor(parts: SecurityGroupParts) {
    this.#parts = parts;
  }

  /** Whether the groups are those of Berth's own network, and not Neutron's. */
  get isOwn(): boolean {
    return this.#parts.own !== null;
  }

  /** The groups of a project, by name; null for those of all projects, for admins. */
  list(call: KnownCall, projectId: string | null): Promise<readonly SecurityGroup[]> {
    return this.#list(call, projectId === null ? {} : { projectId });
  }

  async #list(call: KnownCall, filter: SecurityGroupFilter): Promise<readonly SecurityGroup[]> {
    await this.#ensureDefault(filter.projectId ?? call.identity.projectId);
    const found = await this.#ask(call, (by) => this.#parts.groups.groups(filter, by));
    return found
      .filter((group) => this.#isVisible(group, call))
      .toSorted((a, b) => compare(a.projectId, b.projectId) || compare(a.name, b.name));
  }

  /** Throws a 404 for a group that the caller may not see. */
  async find(call: KnownCall, id: string): Promise<SecurityGroup> {
    await this.#ensureDefault(call.identity.projectId);
    const [group] = await this.#ask(call, (by) => this.#parts.groups.groups({ ids: [id] }, by));
    if (group === undefined || !this.#isVisible(group, call)) throw notFound(`Security group ${id} does not exist`);
    return group;
  }

  /** The names and owners of groups that the caller may see, by id. The groups are without their rules. */
  named(call: KnownCall, ids: readonly string[]): Promise<ReadonlyMap<string, SecurityGroup>> {
    return this.#byId(call, ids, { withoutRules: true });
  }

  async #byId(
    call: KnownCall,
    ids: readonly string[],
    { withoutRules }: { readonly withoutRules: boolean },
  ): Promise<ReadonlyMap<string, SecurityGroup>> {
    if (ids.length === 0) return new Map();
    const filter = { ids: [...new Set(ids)], withoutRules };
    const found = await this.#ask(call, (by) => this.#parts.groups.groups(filter, by));
    return new Map(found.filter((group) => this.#isVisible(group, call)).map((group) => [group.id, group]));
  }

  /** Finds the groups of a project that clients name by name or id, without their rules. `missing` makes the error for one that does not exist. */
  async resolve(
    call: KnownCall,
    projectId: string,
    asked: readonly string[],
    missing: (name: string) => Fault,
  ): Promise<readonly SecurityGroup[]> {
    const known = await this.#list(call, { projectId, withoutRules: true });
    return asked.map((name) => {
      const [group, ...others] = known.filter((one) => one.id === name || one.name === name);
      if (group === undefined) throw missing(name);
      const byId = known.find(({ id }) => id === name);
      if (others.length > 0 && byId === undefined)
        throw conflict(`Multiple security_group matches found for name '${name}', use an ID to be more specific.`);
      return byId ?? group;
    });
  }

  async create(
    call: KnownCall,
    values: { readonly name: string; readonly description: string },
  ): Promise<SecurityGroup> {
    const { projectId } = call.identity;
    await this.#ensureDefault(projectId);
    if (values.name === DEFAULT_GROUP) throw badRequest("Default security group already exists. Choose another name.");
    const outcome = await this.#ask(call, (by) => this.#parts.groups.createGroup({ projectId, ...values }, by));
    if (outcome.kind === "created") return outcome.group;
    throw refusalFault(outcome);
  }

  async update(call: KnownCall, id: string, values: Values): Promise<SecurityGroup> {
    const { name } = await this.find(call, id);
    if (name === DEFAULT_GROUP && (values.name ?? name) !== name)
      throw badRequest("Updating the name of the default security group is not allowed.");
    const outcome = await this.#ask(call, (by) => this.#parts.groups.updateGroup(id, values, by));
    if (outcome.kind === "updated") return outcome.group;
    throw refusalFault(outcome);
  }

  /** `inUse` is the status for a group that a port is in: Nova answers 400, and Neutron 409. */
  async remove(call: KnownCall, id: string, inUse: 400 | 409): Promise<void> {
    const { name } = await this.find(call, id);
    if (this.#parts.own !== null && name === DEFAULT_GROUP)
      throw new Fault(inUse, "Removing default security group not allowed.");
    const outcome = await this.#ask(call, (by) => this.#parts.groups.deleteGroup(id, by));
    if (outcome.kind !== "deleted") throw refusalFault(outcome, inUse);
  }

  async findRule(call: KnownCall, id: string): Promise<SecurityGroupRule> {
    await this.#ensureDefault(call.identity.projectId);
    const rule = await this.#ask(call, (by) => this.#parts.groups.rule(id, by));
    if (rule === null || !this.#isVisible(rule, call)) throw notFound(`Security group rule ${id} does not exist`);
    return rule;
  }

  /** Adds a rule to a group that the caller may see. `exists` is the status for a rule that the group has: Nova answers 400, and Neutron 409. */
  async addRule(call: KnownCall, rule: NewSecurityGroupRule, exists: 400 | 409): Promise<SecurityGroupRule> {
    const checked = this.#parts.own === null ? rule : canonicalRule(rule);
    const outcome = await this.#ask(call, (by) => this.#parts.groups.createRule(checked, by));
    if (outcome.kind === "created") return outcome.rule;
    throw refusalFault(outcome, exists);
  }

  async removeRule(call: KnownCall, id: string): Promise<void> {
    await this.findRule(call, id);
    const outcome = await this.#ask(call, (by) => this.#parts.groups.deleteRule(id, by));
    if (outcome.kind !== "deleted") throw refusalFault(outcome);
  }

  /**
   * The groups of servers, by the server; a server in no group is left out. Without `rules`, default groups of Berth's own network are those that
   * each project has at first: their names cannot change, and nothing is read for them.
   */
  async ofServers(
    call: KnownCall,
    servers: readonly { readonly uuid: string; readonly projectId: string }[],
    { rules = false }: { readonly rules?: boolean } = {},
  ): Promise<ReadonlyMap<string, readonly SecurityGroup[]>> {
    if (servers.length === 0) return new Map();
    const ports = await this.#parts.ports.portsOf(
      servers.map(({ uuid }) => uuid),
      call,
    );
    const known = new Map<string, SecurityGroup>();
    const ids = new Set(ports.flatMap(({ groups }) => groups));
    // Default groups need not be stored to be shown.
    if (this.#parts.own !== null)
      for (const projectId of new Set(servers.map((server) => server.projectId))) {
        const id = defaultGroupId(projectId);
        if (rules ? ids.has(id) : ids.delete(id)) known.set(id, defaultGroupOf(projectId));
      }
    for (const [id, group] of await this.#byId(call, [...ids], { withoutRules: !rules })) known.set(id, group);
    const found = new Map<string, Map<string, SecurityGroup>>();
    for (const { serverUuid, groups } of ports)
      for (const group of groups.flatMap((id) => known.get(id) ?? [])) {
        const ofServer = found.get(serverUuid) ?? new Map<string, SecurityGroup>();
        found.set(serverUuid, ofServer.set(group.id, group));
      }
    return new Map([...found].map(([uuid, groups]) => [uuid, [...groups.values()]]));
  }

  /** Puts new ports of Berth's own network into groups. Throws a 400 for a group that was deleted meanwhile. */
  async setNewPorts(ports: readonly { readonly id: string }[], groups: readonly string[]): Promise<void> {
    for (const { id } of ports)
      if ((await this.#parts.own?.setPortGroups(id, null, groups)) === "no-group")
        throw badRequest(`A security group of ${groups.join(", ")} does not exist any longer.`);
  }

  /**
   * Puts all ports of a server into a group. A port that cannot be in groups ends it, as in Nova: the ports before it keep the group. Throws a 400 if
   * all of them are in it already, with the words of Neutron that Nova passes on. If some are, the others are added: an earlier call may have ended between two ports.
   */
  async addToServer(call: KnownCall, serverUuid: string, name: string): Promise<void> {
    let isMissing = false;
    let id = "";
    await this.#eachPort(call, serverUuid, name, (group, groups, hasAddress) => {
      if (!hasAddress)
        throw badRequest(
          "Network requires port_security_enabled and subnet associated in order to apply security groups.",
        );
      id = group.id;
      if (groups.includes(group.id)) return null;
      isMissing = true;
      return [...groups, group.id];
    });
    if (!isMissing)
      throw badRequest(`Invalid input for security_groups. Reason: Duplicate items in the list: '${id}'.`);
  }

  /** Takes the ports of a server out of a group. Throws a 404 if none of them is in it. */
  async removeFromServer(call: KnownCall, serverUuid: string, name: string): Promise<void> {
    let isMember = false;
    await this.#eachPort(call, serverUuid, name, (group, groups) => {
      if (!groups.includes(group.id)) return null;
      isMember = true;
      return groups.filter((id) => id !== group.id);
    });
    if (!isMember) throw notFound(`Security group ${name} not associated with the instance ${serverUuid}`);
  }

  async #ofCaller(call: KnownCall, name: string): Promise<SecurityGroup> {
    const { projectId } = call.identity;
    const missing = () => notFound(`Security group ${name.slice(0, 255)} is not found for project ${projectId}`);
    const [group] = await this.resolve(call, projectId, [name], missing);
    if (group === undefined) throw missing();
    return group;
  }

  /**
   * `change` returns the groups that a port is to have, or null if it may stay as it is. When a port or a group has been changed meanwhile, the ports and
   * the caller's group of that name are read again, so that a group that was deleted meanwhile is a 404.
   */
  async #eachPort(
    call: KnownCall,
    serverUuid: string,
    name: string,
    change: (group: SecurityGroup, groups: readonly string[], hasAddress: boolean) => readonly string[] | null,
  ): Promise<void> {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const group = await this.#ofCaller(call, name);
      const ports = await this.#parts.ports.portsOf([serverUuid], call);
      if (ports.length === 0) throw notFound(`instance_id ${serverUuid} could not be found as device id on any ports`);
      let isChanged = false;
      for (const port of ports) {
        const groups = change(group, port.groups, port.hasAddress);
        if (groups === null) continue;
        const outcome = await port.setGroups(groups);
        if (outcome.kind === "refused") throw badRequest(outcome.why);
        isChanged ||= outcome.kind !== "set";
      }
      if (!isChanged) return;
    }
    throw conflict(`The ports of instance ${serverUuid} kept changing; try again.`);
  }

  async #ensureDefault(projectId: string): Promise<void> {
    await this.#parts.own?.ensureGroup(defaultGroupOf(projectId));
  }

  #isVisible({ projectId }: { readonly projectId: string }, { identity }: KnownCall): boolean {
    return this.#parts.sendsTokens || identity.isAdmin || projectId === identity.projectId;
  }

  #ask<Value>(call: KnownCall, ask: (by: ReturnType<typeof askedBy>) => Promise<Value>): Promise<Value> {
    return askNeighbour(() => ask(askedBy(this.#parts, call)));
  }
}

function refusalFault({ kind, why }: SecurityGroupRefusal, taken: 400 | 409 = 409): Fault {
  switch (kind) {
    case "gone":
      return notFound(why);
    case "in-use":
    case "exists":
      return new Fault(taken, why);
    case "over-quota":
    case "forbidden":
      return new Fault(403, why);
    case "invalid":
      return badRequest(why);
    default:
      return kind satisfies never;
  }
}
