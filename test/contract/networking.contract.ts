import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import type { MemoryNetworking } from "../../adapters/memory/memory-networking.ts";
import { BINDING_FAILED, type Networking, type NewNeutronPort } from "../../core/stores/networking.ts";
import { portBindingsContract } from "./port-bindings.contract.ts";

/** The network of the projects `one` (its own) and of all (`shared`). */
export const OWN_NETWORK = "0a1e0000-6e65-4000-8000-00000000000a";
export const SHARED_NETWORK = "0a1e0000-6e65-4000-8000-00000000000b";
const OWN = { callerToken: null, requestId: null };
const as = (projectId: string) => ({ callerToken: projectId, requestId: null });

/** Puts the networks of the contract: four addresses each. */
export function putContractNetworks(twin: MemoryNetworking): void {
  const network = { isExternal: false, size: 4 };
  twin.putNetwork({
    ...network,
    ...{
      id: OWN_NETWORK,
      name: "own",
      projectId: "one",
      isShared: false,
      subnetIds: [randomUUID()],
      first: "10.1.0.10",
    },
  });
  twin.putNetwork({
    ...network,
    ...{
      id: SHARED_NETWORK,
      name: "all",
      projectId: "ops",
      isShared: true,
      subnetIds: [randomUUID()],
      first: "10.2.0.10",
    },
  });
}

/** Puts an external network with so many addresses, and returns its id. */
export function putExternalNetwork(twin: MemoryNetworking, size: number): string {
  const id = "0a1e0000-6e65-4000-8000-00000000000e";
  const owner = { projectId: "ops", isShared: false, isExternal: true };
  twin.putNetwork({ id, name: "public", ...owner, subnetIds: [randomUUID()], first: "203.0.113.10", size });
  return id;
}

/** Puts a VLAN network of the project `one`, which is on the physical network `physnet1`, and returns its id. */
export function putVlanNetwork(twin: MemoryNetworking): string {
  const id = "0a1e0000-6e65-4000-8000-00000000000f";
  const place = { subnetIds: [randomUUID()], first: "10.3.0.10", size: 4, physicalNetwork: "physnet1", vlan: 105 };
  twin.putNetwork({ id, name: "vlan", projectId: "one", isShared: false, isExternal: false, ...place });
  return id;
}

export function newPort(values: Partial<NewNeutronPort> = {}): NewNeutronPort {
  return {
    ...{ projectId: "one", networkId: OWN_NETWORK, serverUuid: randomUUID(), deviceOwner: "compute:nova" },
    ...{ address: null, securityGroups: null, host: null },
    ...values,
  };
}

/** The guarantees of the Networking service. `twin` is what the service stands on, with which the test plays its other users. */
export function networkingContract(
  name: string,
  make: () => Promise<{ readonly networking: Networking; readonly twin: MemoryNetworking }>,
): void {
  describe(`the Networking service: ${name}`, () => {
    let networking: Networking;
    let twin: MemoryNetworking;
    beforeEach(async () => {
      ({ networking, twin } = await make());
      putContractNetworks(twin);
    });

    async function makeOne(values: Partial<NewNeutronPort> = {}) {
      const outcome = await networking.createPorts([newPort(values)], OWN);
      if (outcome.kind !== "created") throw new Error(`not created: ${outcome.kind}`);
      return outcome.ports[0]!;
    }

    const revisionOf = async (id: string) => (await networking.ports({ id }, OWN))[0]?.revision ?? 0;

    test("shows callers the networks of their project and the shared ones, and this service all of them", async () => {
      const ids = async (by: typeof OWN | ReturnType<typeof as>) =>
        (await networking.networks({}, by)).map(({ id }) => id).toSorted();
      expect(await ids(as("one"))).toEqual([OWN_NETWORK, SHARED_NETWORK]);
      expect(await ids(as("two"))).toEqual([SHARED_NETWORK]);
      expect(await ids(OWN)).toEqual([OWN_NETWORK, SHARED_NETWORK]);
      const [own] = await networking.networks({ ids: [OWN_NETWORK] }, as("one"));
      expect(own).toMatchObject({ name: "own", projectId: "one", isShared: false, isExternal: false });
      expect(own?.subnetIds).toHaveLength(1);
      expect(await networking.networks({ ids: [OWN_NETWORK] }, as("two"))).toEqual([]);
      expect(await networking.networks({ ids: [] }, OWN)).toEqual([]);
      const shared = await networking.networks({ isShared: true }, OWN);
      expect(shared.map(({ id }) => id)).toEqual([SHARED_NETWORK]);
      const ofOne = await networking.networks({ projectId: "one", isShared: false }, as("one"));
      expect(ofOne.map(({ id }) => id)).toEqual([OWN_NETWORK]);
    });

    test("shows the physical network of a network to this service alone", async () => {
      const ids = [putVlanNetwork(twin)];
      const physical = async (by: typeof OWN | ReturnType<typeof as>) =>
        (await networking.networks({ ids }, by)).map(({ physicalNetwork }) => physicalNetwork);
      expect(await physical(OWN)).toEqual(["physnet1"]);
      expect(await physical(as("one"))).toEqual([undefined]);
    });

    test("binds a direct port by the card's own switch, with the VLAN of its network", async () => {
      const { id } = twin.putPort({ projectId: "one", networkId: putVlanNetwork(twin), vnicType: "direct" });
      const profile = { trusted: "true", pci_slot: "0000:3b:02.0" };
      const bound = await networking.updatePort(id, { host: "h", profile }, await revisionOf(id));
      expect(bound).toMatchObject({ kind: "updated", port: { vnicType: "direct", vifType: "hw_veb", profile } });
      expect((await networking.ports({ id }, OWN))[0]).toMatchObject({ vifDetails: { vlan: "105" }, profile });
    });

    test("makes a network for a project without any, where it can", async () => {
      expect(await networking.autoNetwork("one", as("one"))).toBeNull();
      twin.autoNetworks.set("one", OWN_NETWORK);
      expect(await networking.autoNetwork("one", as("one"))).toMatchObject({ id: OWN_NETWORK, name: "own" });
    });

    test("makes ports for servers in the order of the request, and finds them by their server", async () => {
      const [first, second] = [newPort(), newPort({ address: "10.1.0.12" })];
      const outcome = await networking.createPorts([second, first], OWN);
      if (outcome.kind !== "created") throw new Error(outcome.kind);
      expect(outcome.ports.map(({ deviceId }) => deviceId)).toEqual([second.serverUuid, first.serverUuid]);
      expect(outcome.ports[0]).toMatchObject({ projectId: "one", networkId: OWN_NETWORK, host: "", groups: [] });
      expect(outcome.ports[0]?.fixedAddresses.map(({ address }) => address)).toEqual(["10.1.0.12"]);
      expect(outcome.ports[0]?.macAddress).toMatch(/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/);
      const found = await networking.ports({ deviceIds: [first.serverUuid, second.serverUuid] }, OWN);
      expect(found.map(({ id }) => id).toSorted()).toEqual(outcome.ports.map(({ id }) => id).toSorted());
      expect(await networking.ports({ deviceIds: [] }, OWN)).toEqual([]);
      const [at] = await networking.ports({ networkId: OWN_NETWORK, address: "10.1.0.12" }, OWN);
      expect(at?.id).toBe(outcome.ports[0]?.id);
    });

    test("makes all ports or none, and says why", async () => {
      await makeOne({ address: "10.1.0.11" });
      const count = () => twin.all().length;
      const taken = await networking.createPorts([newPort(), newPort({ address: "10.1.0.11" })], OWN);
      expect(taken).toEqual({ kind: "address-taken" });
      const many = Array.from({ length: 4 }, () => newPort());
      expect(await networking.createPorts(many, OWN)).toEqual({ kind: "no-address" });
      const elsewhere = await networking.createPorts([newPort({ address: "192.0.2.1" })], OWN);
      expect(elsewhere.kind).toBe("refused");
      expect((await networking.createPorts([newPort({ networkId: randomUUID() })], OWN)).kind).toBe("refused");
      twin.portsMax = 1;
      expect(await networking.createPorts([newPort()], OWN)).toEqual({ kind: "over-quota" });
      expect(count()).toBe(1);
    });

    test("lets callers make ports as its policy allows, and says what it forbids", async () => {
      const own = await networking.createPorts([newPort({ address: "10.1.0.12" })], as("one"));
      expect(own).toMatchObject({ kind: "created", ports: [{ projectId: "one", host: "" }] });
      const ofTwo = { projectId: "two", networkId: SHARED_NETWORK };
      expect((await networking.createPorts([newPort(ofTwo)], as("two"))).kind).toBe("created");
      const refused = await networking.createPorts([newPort({ ...ofTwo, address: "10.2.0.12" })], as("two"));
      expect(refused).toEqual({ kind: "forbidden", why: expect.stringContaining("disallowed by policy") });
      const bound = await networking.createPorts([newPort({ ...ofTwo, host: "host-1" })], as("two"));
      expect(bound.kind).toBe("forbidden");
      expect(twin.all()).toHaveLength(2);
    });

    test("binds a port to a host at once or later, and says when no driver of the host can connect it", async () => {
      twin.hostsWithoutDriver.add("lonely");
      const bound = await makeOne({ host: "host-1" });
      expect(bound).toMatchObject({ host: "host-1", vifType: "ovs" });
      const failed = await networking.updatePort(bound.id, { host: "lonely" }, await revisionOf(bound.id));
      if (failed.kind !== "updated") throw new Error(failed.kind);
      expect(failed.port).toMatchObject({ host: "lonely", vifType: BINDING_FAILED });
      const back = await networking.updatePort(bound.id, { host: "host-2" }, await revisionOf(bound.id));
      expect(back).toMatchObject({
        kind: "updated",
        port: { host: "host-2", vifType: "ovs", deviceId: bound.deviceId },
      });
    });

    test("of two changes that know the same revision, one has an effect", async () => {
      const port = await makeOne();
      const outcomes = await Promise.all([
        networking.updatePort(port.id, { host: "host-1" }, port.revision),
        networking.updatePort(port.id, { host: "host-2" }, port.revision),
      ]);
      expect(outcomes.map(({ kind }) => kind).toSorted()).toEqual(["changed", "updated"]);
    });

    test("gives a port to a server, and takes it away together with its host", async () => {
      const port = twin.putPort({ projectId: "one", networkId: OWN_NETWORK });
      const serverUuid = randomUUID();
      const given = await networking.updatePort(
        port.id,
        { device: { serverUuid, owner: "compute:nova" }, host: "host-1", securityGroups: ["group"] },
        port.revision,
      );
      if (given.kind !== "updated") throw new Error(given.kind);
      expect(given.port).toMatchObject({ deviceId: serverUuid, host: "host-1", securityGroups: ["group"] });
      const taken = await networking.updatePort(port.id, { device: null }, await revisionOf(port.id));
      expect(taken).toMatchObject({ kind: "updated", port: { deviceId: "", host: "" } });
    });

    test("gives a port another set of addresses, as its policy allows", async () => {
      const port = await makeOne({ address: "10.1.0.11" });
      const [fixed] = port.fixedAddresses;
      const more = [
        { subnetId: fixed!.subnetId, address: fixed!.address },
        { subnetId: fixed!.subnetId, address: null },
      ];
      const grown = await networking.updatePort(port.id, { fixedAddresses: more }, port.revision, as("one"));
      if (grown.kind !== "updated") throw new Error(grown.kind);
      expect(grown.port.fixedAddresses).toHaveLength(2);
      expect(new Set(grown.port.fixedAddresses.map(({ address }) => address)).size).toBe(2);
      const rest = grown.port.fixedAddresses.slice(1);
      const shrunk = await networking.updatePort(port.id, { fixedAddresses: rest }, await revisionOf(port.id));
      expect(shrunk).toMatchObject({ kind: "updated", port: { fixedAddresses: rest } });
      const others = twin.putPort({ projectId: "two", networkId: SHARED_NETWORK });
      const asked = { fixedAddresses: [{ subnetId: others.fixedAddresses[0]!.subnetId, address: null }] };
      expect((await networking.updatePort(others.id, asked, others.revision, as("two"))).kind).toBe("forbidden");
      const all = Array.from({ length: 9 }, () => ({ subnetId: fixed!.subnetId, address: null }));
      const full = await networking.updatePort(port.id, { fixedAddresses: all }, await revisionOf(port.id));
      expect(full.kind).toBe("refused");
    });

    test("finds the external networks, which every caller sees", async () => {
      const id = putExternalNetwork(twin, 1);
      const found = await networking.networks({ isExternal: true }, as("two"));
      expect(found).toMatchObject([{ id, name: "public", isExternal: true }]);
    });

    test("shows callers no ports of other projects", async () => {
      const port = await makeOne();
      expect(await networking.ports({ id: port.id }, as("two"))).toEqual([]);
      const [seen] = await networking.ports({ id: port.id }, as("one"));
      expect(seen).toMatchObject({ id: port.id, deviceId: port.deviceId });
    });

    test("deletes a port, which may be repeated, and knows it no longer", async () => {
      const port = await makeOne();
      await networking.deletePort(port.id, null);
      await networking.deletePort(port.id, null);
      expect(await networking.ports({ id: port.id }, OWN)).toEqual([]);
      expect(await networking.updatePort(port.id, { host: "host-1" }, port.revision)).toEqual({ kind: "gone" });
    });

    test("deletes a port in the revision in which it was read only, so that a late call deletes nothing that was changed since", async () => {
      const port = await makeOne();
      await networking.updatePort(port.id, { securityGroups: ["group"] }, port.revision);
      expect(await networking.deletePort(port.id, port.revision)).toBe("changed");
      expect(twin.all()).toHaveLength(1);
      expect(await networking.deletePort(port.id, await revisionOf(port.id))).toBe("deleted");
      expect(await networking.deletePort(port.id, 1)).toBe("deleted");
    });

    test("a call that is not answered may have had its effect, and is an error", async () => {
      twin.fate = (method) => (method === "createPorts" ? "lost" : "answered");
      const lost = newPort();
      await expect(networking.createPorts([lost], OWN)).rejects.toMatchObject({ code: "unreachable" });
      expect(await networking.ports({ deviceIds: [lost.serverUuid] }, OWN)).toHaveLength(1);
      twin.fate = () => "silent";
      await expect(networking.networks({}, OWN)).rejects.toMatchObject({ code: "unreachable" });
      await expect(networking.deletePort(randomUUID(), null)).rejects.toMatchObject({ code: "unreachable" });
    });

    test("shows the resource requests of a port to this service", async () => {
      const groups = [{ id: randomUUID(), resources: { NET_BW_EGR_KILOBIT_PER_SEC: 1000 }, required: ["CUSTOM_A"] }];
      const port = twin.putPort({ projectId: "one", networkId: OWN_NETWORK, groups });
      expect((await networking.ports({ id: port.id }, OWN))[0]?.groups).toEqual(groups);
    });

    describe("with bindings of a port to several hosts", () => {
      beforeEach(() => void twin.hostsWithoutDriver.add("lonely"));
      portBindingsContract(
        () => networking,
        () => makeOne({ host: "host-1" }),
      );

      test("says when it has no such bindings", async () => {
        twin.hasExtendedBindings = false;
        expect(await networking.hasBindings()).toBe(false);
      });
    });
  });
}
