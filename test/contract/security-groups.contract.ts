import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import type { NewSecurityGroupRule, SecurityGroup, SecurityGroups } from "../../core/stores/security-groups.ts";

const OWN = { callerToken: null, requestId: null };

/** Security groups, and the other side that puts a port into one. */
export interface SecurityGroupsMade {
  readonly groups: SecurityGroups;
  /** Makes a port of the project in the group. */
  putPort(projectId: string, groupId: string): Promise<void>;
}

/** The guarantees of all implementations of security groups. */
export function securityGroupsContract(name: string, make: () => Promise<SecurityGroupsMade>): void {
  describe(`security groups: ${name}`, () => {
    let made: SecurityGroupsMade;
    let groups: SecurityGroups;
    let projectId: string;
    beforeEach(async () => {
      made = await make();
      ({ groups } = made);
      projectId = randomUUID().replaceAll("-", "");
    });

    async function create(values: Partial<SecurityGroup> = {}): Promise<SecurityGroup> {
      const outcome = await groups.createGroup({ projectId, name: "web", description: "sites", ...values }, OWN);
      if (outcome.kind !== "created") throw new Error(outcome.why);
      return outcome.group;
    }
    const rule = (groupId: string, values: Partial<NewSecurityGroupRule> = {}): NewSecurityGroupRule => ({
      ...{ groupId, projectId, direction: "ingress", etherType: "IPv4", protocol: "tcp", portMin: 80, portMax: 81 },
      ...{ remotePrefix: "192.0.2.0/24", remoteGroupId: null, description: "" },
      ...values,
    });
    const find = async (id: string) => (await groups.groups({ ids: [id] }, OWN))[0];

    test("a new group lets all traffic out, and is found by its project and its id", async () => {
      const group = await create();
      expect(group).toMatchObject({ projectId, name: "web", description: "sites" });
      expect(group.rules.map(({ direction }) => direction)).toEqual(["egress", "egress"]);
      expect(group.rules.map(({ etherType }) => etherType).toSorted()).toEqual(["IPv4", "IPv6"]);
      const ofProject = await groups.groups({ projectId }, OWN);
      expect(ofProject.map(({ id }) => id)).toContain(group.id);
      expect(await find(group.id)).toMatchObject({
        name: "web",
        rules: expect.arrayContaining(group.rules as never[]),
      });
      const named = await groups.groups({ ids: [group.id], withoutRules: true }, OWN);
      expect(named).toEqual([{ ...group, rules: [] }]);
      expect(await groups.groups({ ids: [] }, OWN)).toEqual([]);
      expect(await groups.groups({ ids: [randomUUID()] }, OWN)).toEqual([]);
    });

    test("names need not be unique, and a group is renamed", async () => {
      const [one, other] = [await create(), await create()];
      const renamed = await groups.updateGroup(one.id, { name: "db", description: "" }, OWN);
      expect(renamed).toMatchObject({ kind: "updated", group: { id: one.id, name: "db", description: "" } });
      expect(await find(other.id)).toMatchObject({ name: "web" });
      expect(await groups.updateGroup(one.id, { description: "only this" }, OWN)).toMatchObject({
        group: { name: "db", description: "only this" },
      });
      expect(await groups.updateGroup(randomUUID(), { name: "x" }, OWN)).toMatchObject({ kind: "gone" });
    });

    test("rules are added once, shown with their group, and removed", async () => {
      const group = await create();
      const added = await groups.createRule(rule(group.id), OWN);
      if (added.kind !== "created") throw new Error(added.why);
      expect(added.rule).toMatchObject(rule(group.id));
      const why = `Security group rule already exists. Rule id is ${added.rule.id}.`;
      expect(await groups.createRule(rule(group.id), OWN)).toEqual({ kind: "exists", why });
      const other = await groups.createRule(rule(group.id, { portMax: 82 }), OWN);
      expect(other.kind).toBe("created");
      expect((await find(group.id))?.rules).toHaveLength(4);
      expect(await groups.rule(added.rule.id, OWN)).toMatchObject(rule(group.id));
      expect(await groups.deleteRule(added.rule.id, OWN)).toEqual({ kind: "deleted" });
      expect(await groups.deleteRule(added.rule.id, OWN)).toMatchObject({ kind: "gone" });
      expect(await groups.rule(added.rule.id, OWN)).toBeNull();
      expect((await find(group.id))?.rules).toHaveLength(3);
    });

    test("a rule needs its group and the group that it names, and goes with either", async () => {
      const [group, remote] = [await create(), await create({ name: "clients" })];
      const fromNone = rule(group.id, { remotePrefix: null, remoteGroupId: randomUUID() });
      expect(await groups.createRule(rule(randomUUID()), OWN)).toMatchObject({ kind: "gone" });
      expect(await groups.createRule(fromNone, OWN)).toMatchObject({ kind: "gone" });
      const from = await groups.createRule(rule(group.id, { remotePrefix: null, remoteGroupId: remote.id }), OWN);
      if (from.kind !== "created") throw new Error(from.why);
      expect(from.rule).toMatchObject({ remoteGroupId: remote.id, remotePrefix: null });
      expect(await groups.deleteGroup(remote.id, OWN)).toEqual({ kind: "deleted" });
      expect(await groups.rule(from.rule.id, OWN)).toBeNull();
      const last = await groups.createRule(rule(group.id), OWN);
      if (last.kind !== "created") throw new Error(last.why);
      expect(await groups.deleteGroup(group.id, OWN)).toEqual({ kind: "deleted" });
      expect(await groups.rule(last.rule.id, OWN)).toBeNull();
      expect(await groups.deleteGroup(group.id, OWN)).toMatchObject({ kind: "gone" });
    });

    test("a group that a port is in stays", async () => {
      const group = await create();
      await made.putPort(projectId, group.id);
      expect(await groups.deleteGroup(group.id, OWN)).toMatchObject({ kind: "in-use" });
      expect(await find(group.id)).toMatchObject({ name: "web" });
    });
  });
}
