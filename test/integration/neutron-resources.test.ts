import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MemoryNetworking } from "../../adapters/memory/memory-networking.ts";
import { providerUuid, resourceClass } from "../../core/ledger/ids.ts";
import { patchChange } from "../../core/tasks/patch-change.ts";
import type { PortGroup } from "../../core/tasks/port-record.ts";
import type { HostConfig } from "../../services/compute-agent/host-config.ts";
import { eventually } from "../rigs/eventually.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";

const EGRESS = "NET_BW_EGR_KILOBIT_PER_SEC";
const INGRESS = "NET_BW_IGR_KILOBIT_PER_SEC";
/** The providers of the hosts' interfaces, by name. */
const providers = new Map<string, string>();
const providerOf = (name: string): string => {
  const known = providers.get(name) ?? randomUUID();
  providers.set(name, known);
  return known;
};
/** Two interfaces with bandwidth, on two physical networks. */
const host = (name: string): HostConfig => ({
  name,
  inventories: { VCPU: { total: 16 }, MEMORY_MB: { total: 16_384 }, DISK_GB: { total: 10_000 } },
  children: ["A", "B"].map((net) => ({
    name: `${name}-nic-${net}`,
    uuid: providerOf(`${name}-nic-${net}`),
    inventories: { [EGRESS]: { total: 10_000 }, [INGRESS]: { total: 10_000 } },
    traits: [`CUSTOM_PHYSNET_${net}`],
  })),
});
const NETWORK = randomUUID();
const LIMITED_NETWORK = randomUUID();
const group = (id: string, net: "A" | "B", resources: PortGroup["resources"]): PortGroup => ({
  ...{ id, resources, required: [`CUSTOM_PHYSNET_${net}`] },
});

describe("ports in Neutron that request resources, in a whole cloud", () => {
  const neutron = new MemoryNetworking({ newId: randomUUID });
  let cloud: TestCloud;
  let project: string;
  beforeAll(async () => {
    const cells = [{ name: "cell-1", hosts: ["one", "two", "three"].map(host) }];
    const { floatingIps, securityGroups } = neutron;
    const parts = { networking: neutron, floatingIps, neutronSecurityGroups: securityGroups };
    cloud = await startTestCloud({ cells, schedulers: 1, conductors: 1, networks: "neutron", neutron: parts });
    project = "default";
    const network = { projectId: project, isShared: true, isExternal: false, subnetIds: ["s"], size: 50 };
    neutron.putNetwork({ ...network, id: NETWORK, name: "plain", first: "10.9.0.10" });
    const groups = [group("g", "A", { [EGRESS]: 10 })];
    neutron.putNetwork({ ...network, id: LIMITED_NETWORK, name: "limited", first: "10.9.1.10", groups });
    for (const [id, vcpus] of [
      ["s", 1],
      ["m", 2],
    ])
      await cloud.call("POST", "/v2.1/flavors", { flavor: { id, name: id, vcpus, ram: 64, disk: 1 } });
  });
  afterAll(() => cloud?.close());

  const userPort = (...groups: readonly PortGroup[]) =>
    neutron.putPort({ projectId: project, networkId: NETWORK, groups }).id;
  const port = (id: string) => neutron.all().find((one) => one.id === id)!;
  const show = async (id: string) => (await cloud.call("GET", `/v2.1/servers/${id}`)).json.server;
  const settled = (id: string): Promise<{ status: string; host: string | null }> =>
    eventually("the operation's end", async () => {
      const { status, ...shown } = await show(id);
      const isOver = shown["OS-EXT-STS:task_state"] === null && status !== "BUILD";
      return isOver && { status, host: shown["OS-EXT-SRV-ATTR:host"] };
    });
  const create = (networks: readonly object[], minor = 90) =>
    cloud.call("POST", "/v2.1/servers", { server: { name: "x", flavorRef: "s", imageRef: "", networks } }, minor);
  const boot = async (networks: readonly object[]): Promise<string> => {
    const { status, json } = await create(networks);
    expect([status, json]).toEqual([202, expect.anything()]);
    const { id } = json.server;
    expect(await settled(id)).toMatchObject({ status: "ACTIVE" });
    return id;
  };
  const act = async (id: string, action: string, value: unknown = null) => {
    const { status, json } = await cloud.call("POST", `/v2.1/servers/${id}/action`, { [action]: value });
    expect([action, status, json]).toEqual([action, expect.toBeOneOf([202, 204]), null]);
    return settled(id);
  };
  const bandwidth = async (server: string): Promise<number> => {
    const [holding] = await cloud.cells[0]!.store.holdings([server]);
    const items = holding?.items.filter(({ resourceClass }) => resourceClass === EGRESS) ?? [];
    return items.reduce((sum, { amount }) => sum + amount, 0);
  };
  /** The port is bound to the server's host, and Neutron knows the provider there. */
  const expectServed = (portId: string, at: string | null, form: (provider: string) => unknown, net = "A") => {
    const allocation = form(providerOf(`${at}-nic-${net}`));
    expect(port(portId)).toMatchObject({ host: at, vifType: "ovs", profile: { allocation } });
  };
  const inGroups = (provider: string) => ({ "g-0": provider, "g-1": provider });
  const inOne = (provider: string) => provider;
  const twoGroups = () => [group("g-0", "A", { [EGRESS]: 3_000 }), group("g-1", "A", { [INGRESS]: 1_000 })];

  test("are claimed by a new server, follow each of its moves with their providers, and are given back free of them", async () => {
    const nic = userPort(...twoGroups());
    const id = await boot([{ port: nic }]);
    const { host: first } = await settled(id);
    expectServed(nic, first, inGroups);
    expect(await bandwidth(id)).toBe(3_000);

    const live = await act(id, "os-migrateLive", { host: null, block_migration: "auto" });
    expect([live.status, live.host === first]).toEqual(["ACTIVE", false]);
    expectServed(nic, live.host, inGroups);

    const resized = await act(id, "resize", { flavorRef: "m" });
    expect(resized).toMatchObject({ status: "VERIFY_RESIZE" });
    expectServed(nic, resized.host, inGroups);
    const reverted = await act(id, "revertResize");
    expect(reverted.host).toBe(live.host);
    expectServed(nic, live.host, inGroups);

    await act(id, "migrate");
    const moved = await act(id, "confirmResize");
    expectServed(nic, moved.host, inGroups);
    await act(id, "shelve");
    expect(await act(id, "shelveOffload")).toEqual({ status: "SHELVED_OFFLOADED", host: null });
    const back = await act(id, "unshelve");
    expect(back.status).toBe("ACTIVE");
    expectServed(nic, back.host, inGroups);
    expect(await bandwidth(id)).toBe(3_000);

    await cloud.call("DELETE", `/v2.1/servers/${id}`);
    await eventually("its end", async () => (await cloud.call("GET", `/v2.1/servers/${id}`)).status === 404);
    await eventually("the end of its port", () => port(nic).deviceId === "");
    expect([port(nic).host, port(nic).profile, await bandwidth(id)]).toEqual(["", {}, 0]);
  });

  test("are claimed when they are attached, in the older form too, and released when they are detached", async () => {
    const [nic, big] = [userPort(group("", "B", { [EGRESS]: 8_000 })), userPort(group("", "B", { [EGRESS]: 8_000 }))];
    const id = await boot([{ uuid: NETWORK }]);
    const { host: at } = await settled(id);
    const interfaces = `/v2.1/servers/${id}/os-interface`;
    const attach = (portId: string) => cloud.call("POST", interfaces, { interfaceAttachment: { port_id: portId } });
    expect((await attach(nic)).status).toBe(200);
    expectServed(nic, at, inOne, "B");
    expect(await bandwidth(id)).toBe(8_000);
    const refused = await attach(big);
    expect([refused.status, refused.json.badRequest.message]).toEqual([
      400,
      `Failed to allocate additional resources to ${id} during interface attach`,
    ]);
    expect([port(big).deviceId, port(big).host, port(big).profile]).toEqual(["", "", {}]);
    const moved = await act(id, "os-migrateLive", { host: null, block_migration: "auto" });
    expectServed(nic, moved.host, inOne, "B");
    expect((await cloud.call("DELETE", `${interfaces}/${nic}`)).status).toBe(202);
    expect([port(nic).deviceId, port(nic).profile, await bandwidth(id)]).toEqual(["", {}, 0]);
    await cloud.call("DELETE", `/v2.1/servers/${id}`);
  });

  test.each([
    ["more", 2_000],
    ["less", 500],
  ])(
    "are claimed by a move, and released by a detachment, as Neutron has them when a port's policy has come to request %s",
    async (_, amount) => {
      const other = userPort(group("", "A", { [EGRESS]: 1_000 }));
      const nic = userPort(group("g", "A", { [EGRESS]: 1_000 }));
      const id = await boot([{ port: other }, { port: nic }]);
      /** Neutron changes what the port requests, and what its server holds for that. */
      const changePolicy = async (to: number) => {
        const { store } = cloud.cells[0]!;
        const by = to - port(nic).groups[0]!.resources[EGRESS]!;
        const [server, holding] = [(await store.servers([id]))[0]!, (await store.holdings([id]))[0]!];
        const provider = providerUuid(providerOf(`${server.host}-nic-A`));
        const item = { provider, resourceClass: resourceClass(EGRESS), amount: Math.abs(by) };
        const change = patchChange(server.spec, holding, { more: by > 0 ? [item] : [], less: by < 0 ? [item] : [] });
        const { revision, spec } = server;
        expect(await store.patchHoldings([{ serverUuid: id, revision, change, spec }])).toMatchObject([
          { kind: "patched" },
        ]);
        neutron.putPort({ ...port(nic), groups: [group(`g-${to}`, "A", { [EGRESS]: to })] });
      };
      await changePolicy(amount);
      expect(await bandwidth(id)).toBe(1_000 + amount);
      const moved = await act(id, "os-migrateLive", { host: null, block_migration: "auto" });
      expect(await bandwidth(id)).toBe(1_000 + amount);
      expectServed(nic, moved.host, (provider) => ({ [`g-${amount}`]: provider }));
      await changePolicy(700);
      expect((await cloud.call("DELETE", `/v2.1/servers/${id}/os-interface/${nic}`)).status).toBe(202);
      expect(await bandwidth(id)).toBe(1_000);
      await cloud.call("DELETE", `/v2.1/servers/${id}`);
    },
  );

  test("are refused as Nova refuses them: before 2.72, and when Neutron makes them on a network with a QoS policy", async () => {
    const nic = userPort(...twoGroups());
    const early = await create([{ port: nic }], 71);
    expect([early.status, early.json.badRequest.message]).toEqual([
      400,
      "Creating servers with ports having resource requests, like a port with a QoS minimum bandwidth policy, is not supported until microversion 2.72.",
    ]);
    const direct = neutron.putPort({ projectId: project, networkId: NETWORK, groups: twoGroups(), vnicType: "direct" });
    expect((await create([{ port: direct.id }])).json.badRequest.message).toContain("does not claim together");
    const made = await create([{ uuid: LIMITED_NETWORK }]);
    expect([made.status, made.json.badRequest.message]).toEqual([
      400,
      expect.stringMatching(/^Using networks with QoS policy is not supported for instance [0-9a-f-]+\. \(Network ID/),
    ]);
    const id = await boot([{ uuid: NETWORK }]);
    const attached = { interfaceAttachment: { net_id: LIMITED_NETWORK } };
    expect((await cloud.call("POST", `/v2.1/servers/${id}/os-interface`, attached)).status).toBe(400);
    expect(neutron.all().filter(({ networkId }) => networkId === LIMITED_NETWORK)).toEqual([]);
    expect(port(nic).deviceId).toBe("");
    await cloud.call("DELETE", `/v2.1/servers/${id}`);
  });
});
