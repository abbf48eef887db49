import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NeighbourClient } from "../../adapters/openstack/neighbour-client.ts";
import { NEUTRON, NeutronClient } from "../../adapters/openstack/neutron-client.ts";
import { BINDING_FAILED, type NeutronPort, type NewNeutronPort } from "../../core/stores/networking.ts";
import { portBindingsContract } from "../contract/port-bindings.contract.ts";
import { withServiceLogin } from "../rigs/with-service-login.ts";
import { hasNeutron, type RealNeutron, startRealNeutron } from "./real-neutron.ts";

const OWN = { callerToken: null, requestId: null };
const as = (projectId: string) => ({ callerToken: projectId, requestId: null });

// Needs Debian's package neutron-server: `npm run test:openstack` installs it.
describe.runIf(hasNeutron)("a real Neutron", () => {
  let neutron: RealNeutron;
  let client: NeighbourClient;
  let networking: NeutronClient;
  let network = "";

  beforeAll(async () => {
    neutron = await startRealNeutron();
    client = withServiceLogin({ ...NEUTRON, url: neutron.url, timeoutMs: 60_000, triesMax: 1 });
    networking = new NeutronClient(client);
    network = await makeNetwork("own", "one", "10.1.0.0/28");
  }, 900_000);
  afterAll(async () => {
    await client?.close();
    await neutron?.stop();
  });

  async function makeNetwork(name: string, project_id: string, cidr: string, shared = false): Promise<string> {
    const made = await neutron.call("POST", "networks", { network: { name, project_id, shared } });
    const id = made.network?.id ?? "";
    await neutron.call("POST", "subnets", {
      subnet: { network_id: id, cidr, ip_version: 4, project_id, enable_dhcp: false },
    });
    return id;
  }
  const newPort = (values: Partial<NewNeutronPort> = {}): NewNeutronPort => ({
    ...{ projectId: "one", networkId: network, serverUuid: randomUUID(), deviceOwner: "compute:nova" },
    ...{ address: null, securityGroups: null, host: null },
    ...values,
  });
  async function make(values: Partial<NewNeutronPort> = {}): Promise<NeutronPort> {
    const outcome = await networking.createPorts([newPort(values)], OWN);
    if (outcome.kind !== "created") throw new Error(`not created: ${JSON.stringify(outcome)}`);
    return outcome.ports[0]!;
  }

  const revisionOf = async (id: string) => (await networking.ports({ id }, OWN))[0]?.revision ?? 0;

  test("shows callers the networks of their project and the shared ones", async () => {
    const shared = await makeNetwork("all", "ops", "10.2.0.0/28", true);
    const ids = async (by: ReturnType<typeof as> | typeof OWN) =>
      (await networking.networks({}, by)).map(({ id }) => id).toSorted();
    expect(await ids(as("one"))).toEqual([network, shared].toSorted());
    expect(await ids(as("two"))).toEqual([shared]);
    expect(await ids(OWN)).toEqual([network, shared].toSorted());
    expect(await networking.networks({ isShared: true }, as("two"))).toMatchObject([
      { id: shared, name: "all", isShared: true },
    ]);
    expect(await networking.networks({ projectId: "one", isShared: false }, as("one"))).toMatchObject([
      { id: network },
    ]);
    expect(await networking.networks({ ids: [network] }, as("two"))).toEqual([]);
    const [own] = await networking.networks({ ids: [network] }, as("one"));
    expect([own?.subnetIds.length, own?.isExternal]).toEqual([1, false]);
  });

  test("cannot make a network for a project, since this Neutron lacks the extension", async () => {
    expect(await networking.autoNetwork("one", as("one"))).toBeNull();
  });

  test("makes ports in the order of the request, finds them, and deletes them repeatedly", async () => {
    const wanted = [newPort({ address: "10.1.0.12" }), newPort(), newPort({ address: "10.1.0.11" })];
    const outcome = await networking.createPorts(wanted, OWN);
    if (outcome.kind !== "created") throw new Error(JSON.stringify(outcome));
    expect(outcome.ports.map(({ deviceId }) => deviceId)).toEqual(wanted.map(({ serverUuid }) => serverUuid));
    expect(outcome.ports[0]).toMatchObject({
      projectId: "one",
      networkId: network,
      host: "",
      groups: [],
      ipAllocation: "immediate",
    });
    expect(outcome.ports[0]?.fixedAddresses.map(({ address }) => address)).toEqual(["10.1.0.12"]);
    expect(outcome.ports[0]?.securityGroups).toHaveLength(1);
    const found = await networking.ports({ deviceIds: wanted.map(({ serverUuid }) => serverUuid) }, OWN);
    expect(found.map(({ id }) => id).toSorted()).toEqual(outcome.ports.map(({ id }) => id).toSorted());
    const [at] = await networking.ports({ networkId: network, address: "10.1.0.11" }, OWN);
    expect(at?.id).toBe(outcome.ports[2]?.id);
    expect(await networking.ports({ id: at?.id ?? "" }, as("two"))).toEqual([]);
    expect(await networking.ports({ id: at?.id ?? "" }, as("one"))).toMatchObject([
      { deviceId: wanted[2]?.serverUuid },
    ]);
    for (const { id } of [...outcome.ports, ...outcome.ports]) await networking.deletePort(id, null);
    expect(await networking.ports({ id: at?.id ?? "" }, OWN)).toEqual([]);
  });

  test("makes all ports or none, and says why", async () => {
    const small = await makeNetwork("small", "one", "10.3.0.0/29");
    const inUse = await make({ networkId: small, address: "10.3.0.3" });
    const on = (values: Partial<NewNeutronPort>) => newPort({ networkId: small, ...values });
    expect(await networking.createPorts([on({}), on({ address: "10.3.0.3" })], OWN)).toEqual({ kind: "address-taken" });
    const many = Array.from({ length: 6 }, () => on({}));
    expect(await networking.createPorts(many, OWN)).toEqual({ kind: "no-address" });
    expect(await networking.createPorts([on({ address: "192.0.2.1" })], OWN)).toMatchObject({ kind: "refused" });
    expect(await networking.createPorts([on({ networkId: randomUUID() })], OWN)).toMatchObject({ kind: "refused" });
    await neutron.call("PUT", "quotas/one", { quota: { port: 1 } });
    expect(await networking.createPorts([on({})], OWN)).toEqual({ kind: "over-quota" });
    await neutron.call("DELETE", "quotas/one");
    expect(await networking.ports({ networkId: small }, OWN)).toMatchObject([{ id: inUse.id }]);
  });

  test("binds a port at once or later, and says when no driver can connect it", async () => {
    const bound = await make({ host: "host-1" });
    expect(bound).toMatchObject({ host: "host-1", vifType: "ovs", status: "ACTIVE" });
    const failed = await networking.updatePort(bound.id, { host: "lonely" }, await revisionOf(bound.id));
    if (failed.kind !== "updated") throw new Error(failed.kind);
    expect(failed.port).toMatchObject({ host: "lonely", vifType: BINDING_FAILED });
    const back = await networking.updatePort(bound.id, { host: "host-2" }, await revisionOf(bound.id));
    expect(back).toMatchObject({ kind: "updated", port: { host: "host-2", vifType: "ovs", deviceId: bound.deviceId } });
  });

  test("refuses a change of a revision that is not the present one, and one of a port that is gone", async () => {
    const port = await make();
    const first = await networking.updatePort(port.id, { host: "host-1" }, port.revision);
    expect(first.kind).toBe("updated");
    expect(await networking.updatePort(port.id, { host: "host-2" }, port.revision)).toEqual({ kind: "changed" });
    expect(await networking.ports({ id: port.id }, OWN)).toMatchObject([{ host: "host-1" }]);
    await networking.deletePort(port.id, null);
    expect(await networking.updatePort(port.id, { host: "host-1" }, port.revision)).toEqual({ kind: "gone" });
  });

  test("gives a port another set of addresses, as its policy allows", async () => {
    const port = await make();
    const [fixed] = port.fixedAddresses;
    const more = [fixed!, { subnetId: fixed!.subnetId, address: null }];
    const grown = await networking.updatePort(port.id, { fixedAddresses: more }, port.revision, as("one"));
    if (grown.kind !== "updated") throw new Error(JSON.stringify(grown));
    expect(grown.port.fixedAddresses.map(({ address }) => address)).toContain(fixed?.address);
    expect(grown.port.fixedAddresses).toHaveLength(2);
    const shrunk = await networking.updatePort(
      port.id,
      { fixedAddresses: [fixed!] },
      await revisionOf(port.id),
      as("one"),
    );
    expect(shrunk).toMatchObject({ kind: "updated", port: { fixedAddresses: [fixed] } });
    const elsewhere = { fixedAddresses: [{ subnetId: fixed!.subnetId, address: "192.0.2.1" }] };
    expect((await networking.updatePort(port.id, elsewhere, await revisionOf(port.id))).kind).toBe("refused");
    const [shared] = await networking.networks({ isShared: true }, as("two"));
    const { ports } = (await networking.createPorts(
      [newPort({ projectId: "two", networkId: shared?.id ?? "" })],
      as("two"),
    )) as Extract<Awaited<ReturnType<typeof networking.createPorts>>, { kind: "created" }>;
    const others = ports[0]!;
    const chosen = { fixedAddresses: [{ subnetId: others.fixedAddresses[0]!.subnetId, address: "10.2.0.9" }] };
    const refused = await networking.updatePort(others.id, chosen, await revisionOf(others.id), as("two"));
    expect(refused.kind).toBe("forbidden");
  });

  test("deletes a port in the revision in which it was read only", async () => {
    const port = await make();
    expect((await networking.updatePort(port.id, { host: "host-1" }, port.revision)).kind).toBe("updated");
    expect(await networking.deletePort(port.id, port.revision)).toBe("changed");
    expect(await networking.ports({ id: port.id }, OWN)).toMatchObject([{ host: "host-1" }]);
    expect(await networking.deletePort(port.id, await revisionOf(port.id))).toBe("deleted");
    expect(await networking.ports({ id: port.id }, OWN)).toEqual([]);
  });

  describe("with bindings of a port to several hosts", () => {
    portBindingsContract(
      () => networking,
      () => make({ host: "host-1" }),
    );
  });

  test("gives a port of a user to a server, and takes it away together with its host", async () => {
    const made = await neutron.call("POST", "ports", { port: { network_id: network, project_id: "one" } });
    const [port] = await networking.ports({ id: made.port?.id ?? "" }, OWN);
    const serverUuid = randomUUID();
    const device = { serverUuid, owner: "compute:nova" };
    const given = await networking.updatePort(port?.id ?? "", { device, host: "host-1" }, port?.revision ?? 0);
    if (given.kind !== "updated") throw new Error(JSON.stringify(given));
    expect(given.port).toMatchObject({ deviceId: serverUuid, host: "host-1", vifType: "ovs" });
    const taken = await networking.updatePort(given.port.id, { device: null }, await revisionOf(given.port.id));
    expect(taken).toMatchObject({ kind: "updated", port: { deviceId: "", host: "", vifType: "unbound" } });
  });
});
