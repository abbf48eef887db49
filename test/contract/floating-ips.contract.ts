import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import type { FloatingIps } from "../../core/stores/floating-ips.ts";
import type { NeutronPort } from "../../core/stores/networking.ts";

const OWN = { callerToken: null, requestId: null };
const as = (projectId: string) => ({ callerToken: projectId, requestId: null });

/** What the contract stands on: an external network of two addresses, and ports of the project `one` on a network that a router connects with it. */
export interface FloatingIpRig {
  readonly floatingIps: FloatingIps;
  readonly externalNetworkId: string;
  readonly internalNetworkId: string;
  putPort(serverUuid: string): Promise<NeutronPort>;
}

/** The guarantees of the floating IPs of the Networking service. */
export function floatingIpsContract(name: string, make: () => Promise<FloatingIpRig>): void {
  describe(`floating IPs: ${name}`, () => {
    let rig: FloatingIpRig;
    beforeEach(async () => {
      rig = await make();
    });
    const create = async (projectId = "one") => {
      const wanted = { projectId, networkId: rig.externalNetworkId };
      const outcome = await rig.floatingIps.createFloatingIp(wanted, as(projectId));
      if (outcome.kind !== "created") throw new Error(JSON.stringify(outcome));
      return outcome.floatingIp;
    };
    const targetOf = ({ id, fixedAddresses }: NeutronPort) => ({
      portId: id,
      fixedAddress: fixedAddresses[0]?.address ?? "",
    });
    const read = async (id: string) => (await rig.floatingIps.floatingIps({ id }, OWN))[0]!;

    test("gives a project addresses until there are none, and shows them to this project only", async () => {
      const { networkId, ...made } = await create();
      expect(made).toMatchObject({ projectId: "one", portId: null, fixedAddress: null, serverUuid: null });
      expect(networkId).toBe(rig.externalNetworkId);
      expect(await rig.floatingIps.floatingIps({ address: made.address }, as("one"))).toMatchObject([{ id: made.id }]);
      expect(await rig.floatingIps.floatingIps({ id: made.id }, as("two"))).toEqual([]);
      const second = await create();
      const wanted = { projectId: "one", networkId: rig.externalNetworkId };
      expect(await rig.floatingIps.createFloatingIp(wanted, as("one"))).toEqual({ kind: "no-address" });
      const listed = await rig.floatingIps.floatingIps({ projectId: "one" }, OWN);
      expect(listed.map(({ id }) => id).toSorted()).toEqual([made.id, second.id].toSorted());
      expect(await rig.floatingIps.deleteFloatingIp(second.id, as("one"))).toEqual({ kind: "deleted" });
      expect((await rig.floatingIps.deleteFloatingIp(second.id, as("one"))).kind).toBe("gone");
    });

    test("refuses networks that are not external or do not exist", async () => {
      const kindOf = async (networkId: string) =>
        (await rig.floatingIps.createFloatingIp({ projectId: "one", networkId }, as("one"))).kind;
      expect([await kindOf(rig.internalNetworkId), await kindOf(randomUUID())]).toEqual(["invalid", "gone"]);
    });

    test("leads to a port of a server, and to nothing again", async () => {
      const [server, floatingIp] = [randomUUID(), await create()];
      const target = targetOf(await rig.putPort(server));
      expect(await rig.floatingIps.associate(floatingIp, target, as("one"))).toEqual({ kind: "associated" });
      const led = { id: floatingIp.id, serverUuid: server, ...target };
      const ofPort = { portIds: [target.portId, randomUUID()] };
      expect(await rig.floatingIps.floatingIps(ofPort, OWN)).toMatchObject([led]);
      expect(await rig.floatingIps.floatingIps({ portIds: [] }, OWN)).toEqual([]);
      expect(await rig.floatingIps.associate(await read(floatingIp.id), null, as("one"))).toEqual({
        kind: "associated",
      });
      expect(await read(floatingIp.id)).toMatchObject({ portId: null, fixedAddress: null, serverUuid: null });
    });

    test("of two changes that know the same revision, one has an effect", async () => {
      const [first, second] = [await rig.putPort(randomUUID()), await rig.putPort(randomUUID())];
      const floatingIp = await create();
      const outcomes = [];
      for (const port of [first, second])
        outcomes.push((await rig.floatingIps.associate(floatingIp, targetOf(port), as("one"))).kind);
      expect(outcomes).toEqual(["associated", "changed"]);
      expect(await read(floatingIp.id)).toMatchObject({ portId: first.id });
      expect(await rig.floatingIps.associate({ id: randomUUID(), revision: 1 }, null, OWN)).toEqual({
        kind: "changed",
      });
    });

    test("refuses an address that the port does not have, and one that has a floating IP already", async () => {
      const target = targetOf(await rig.putPort(randomUUID()));
      const [first, second] = [await create(), await create()];
      const wrong = await rig.floatingIps.associate(first, { ...target, fixedAddress: "192.0.2.9" }, as("one"));
      expect(wrong.kind).toBe("refused");
      expect((await rig.floatingIps.associate(first, target, as("one"))).kind).toBe("associated");
      expect((await rig.floatingIps.associate(second, target, as("one"))).kind).toBe("taken");
    });
  });
}
