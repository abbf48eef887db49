import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import type { PortStore } from "../../core/stores/api/port-store.ts";
import { type OwnSecurityGroups, rulesOfNewGroup, type SecurityGroup } from "../../core/stores/security-groups.ts";
import { type SecurityGroupsMade, securityGroupsContract } from "./security-groups.contract.ts";

const OWN = { callerToken: null, requestId: null };

export interface OwnSecurityGroupsMade {
  readonly groups: OwnSecurityGroups;
  readonly ports: PortStore;
}

/** The guarantees of the security groups of Berth's own network, beside those of all security groups. */
export function ownSecurityGroupsContract(name: string, make: () => Promise<OwnSecurityGroupsMade>): void {
  securityGroupsContract(name, async (): Promise<SecurityGroupsMade> => {
    const { groups, ports } = await make();
    return {
      groups,
      putPort: async (projectId, groupId) => {
        await groups.setPortGroups(await newPort(ports, projectId), null, [groupId]);
      },
    };
  });

  describe(`security groups of own ports: ${name}`, () => {
    let groups: OwnSecurityGroups;
    let ports: PortStore;
    let portId: string;
    let group: SecurityGroup;
    beforeEach(async () => {
      ({ groups, ports } = await make());
      portId = await newPort(ports, "p");
      const id = randomUUID();
      const rules = rulesOfNewGroup({ id, projectId: "p" }).map((rule) => ({ ...rule, id: randomUUID() }));
      group = { id, projectId: "p", name: "web", description: "", rules };
      await groups.ensureGroup(group);
    });
    const groupsOf = async () => (await ports.ports([portId]))[0]?.securityGroups;

    test("a group is made once, also by calls at the same time", async () => {
      const other = { ...group, id: randomUUID(), rules: group.rules.map((rule) => ({ ...rule, id: randomUUID() })) };
      const ofOther = { ...other, rules: other.rules.map((rule) => ({ ...rule, groupId: other.id })) };
      await Promise.all([1, 2, 3].map(() => groups.ensureGroup(ofOther)));
      const [found] = await groups.groups({ ids: [other.id] }, OWN);
      expect(found?.rules).toHaveLength(2);
    });

    test("of equal rules that are added at the same time, one is", async () => {
      const values = { protocol: null, portMin: null, portMax: null, remotePrefix: null, description: "" };
      const ends = { groupId: group.id, projectId: "p", remoteGroupId: group.id } as const;
      const asked = { ...values, ...ends, direction: "ingress", etherType: "IPv4" } as const;
      const outcomes = await Promise.all([1, 2, 3].map(() => groups.createRule(asked, OWN)));
      expect(outcomes.map(({ kind }) => kind).toSorted()).toEqual(["created", "exists", "exists"]);
    });

    test("of two calls that know the same groups of a port, one gives it others", async () => {
      const other = await groups.createGroup({ projectId: "p", name: "db", description: "" }, OWN);
      if (other.kind !== "created") throw new Error(other.why);
      const outcomes = await Promise.all([
        groups.setPortGroups(portId, null, [group.id]),
        groups.setPortGroups(portId, null, [other.group.id]),
      ]);
      expect(outcomes.toSorted()).toEqual(["changed", "set"]);
      const [own] = (await groupsOf()) ?? [];
      expect(await groups.setPortGroups(portId, [own ?? ""], [])).toBe("set");
      expect(await groupsOf()).toEqual([]);
      expect(await groups.setPortGroups(randomUUID(), null, [group.id])).toBe("changed");
    });

    test("a port gets no group that does not exist, also if it is deleted at the same time", async () => {
      expect(await groups.setPortGroups(portId, null, [randomUUID()])).toBe("no-group");
      const [set, deleted] = await Promise.all([
        groups.setPortGroups(portId, null, [group.id]),
        groups.deleteGroup(group.id, OWN),
      ]);
      expect([`${set} ${deleted.kind}`]).toEqual([set === "set" ? "set in-use" : "no-group deleted"]);
      const found = await groups.groups({ ids: [group.id] }, OWN);
      expect(found).toHaveLength(set === "set" ? 1 : 0);
    });
  });
}

async function newPort(ports: PortStore, projectId: string): Promise<string> {
  const id = randomUUID();
  await ports.createPort({
    ...{ id, projectId, networkId: "n", name: "", address: null, endsWithServer: false, groups: [] },
    ...{ securityGroups: null, createdAtMs: 0, binding: null },
  });
  return id;
}
