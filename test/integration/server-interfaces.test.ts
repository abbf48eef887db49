import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isClean } from "../../audit/audit-report.ts";
import { auditTwice } from "../../audit/audit-twice.ts";
import type { HostConfig } from "../../services/compute-agent/host-config.ts";
import { eventually } from "../rigs/eventually.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";

const EGRESS = "NET_BW_EGR_KILOBIT_PER_SEC";
/** Two interfaces of 10,000 kbit/s, on two physical networks. */
const host = (name: string): HostConfig => ({
  name,
  inventories: { VCPU: { total: 16 }, MEMORY_MB: { total: 16_384 }, DISK_GB: { total: 10_000 } },
  children: ["A", "B"].map((net) => ({
    name: `${name}-nic-${net}`,
    inventories: { [EGRESS]: { total: 10_000 } },
    traits: [`CUSTOM_PHYSNET_${net}`],
  })),
});
const NETWORK = randomUUID();

interface Server {
  readonly id: string;
  readonly status: string;
  readonly host: string;
  readonly taskState: string | null;
}

describe("the ports of a running server in a whole cloud", () => {
  let cloud: TestCloud;
  beforeAll(async () => {
    const cells = [{ name: "cell-1", hosts: ["one", "two", "three"].map(host) }];
    cloud = await startTestCloud({ cells, schedulers: 1, conductors: 1 });
    for (const [id, vcpus] of [
      ["s", 1],
      ["m", 2],
    ])
      await cloud.call("POST", "/v2.1/flavors", { flavor: { id, name: id, vcpus, ram: 64, disk: 1 } });
  });
  afterAll(() => cloud?.close());

  const show = async (id: string): Promise<Server> => {
    const { server } = (await cloud.call("GET", `/v2.1/servers/${id}`)).json;
    const { status } = server;
    return { id, status, host: server["OS-EXT-SRV-ATTR:host"], taskState: server["OS-EXT-STS:task_state"] };
  };
  const settled = (id: string) =>
    eventually("the operation's end", async () => {
      const shown = await show(id);
      return shown.taskState === null && shown.status !== "BUILD" && shown;
    });
  const boot = async (fields: Readonly<Record<string, unknown>> = {}): Promise<Server> => {
    const server = { name: "x", flavorRef: "s", imageRef: "", networks: "none", ...fields };
    return settled((await cloud.call("POST", "/v2.1/servers", { server })).json.server.id);
  };
  const port = async (kbits: number, net: "A" | "B" = "A"): Promise<string> => {
    const groups = [{ resources: { [EGRESS]: kbits }, required: [`CUSTOM_PHYSNET_${net}`] }];
    const requested = { network_id: NETWORK, ...(kbits > 0 && { resource_request: { request_groups: groups } }) };
    return (await cloud.call("POST", "/network/v2.0/ports", { port: requested })).json.port.id;
  };
  const interfaces = (id: string) => `/v2.1/servers/${id}/os-interface`;
  const attach = (id: string, portId: string, minor = 90) =>
    cloud.call("POST", interfaces(id), { interfaceAttachment: { port_id: portId } }, minor);
  const detach = (id: string, portId: string) => cloud.call("DELETE", `${interfaces(id)}/${portId}`);
  const act = (id: string, action: string, value: unknown = null) =>
    cloud.call("POST", `/v2.1/servers/${id}/action`, { [action]: value });
  const portsOf = async (id: string): Promise<string[]> =>
    (await cloud.call("GET", interfaces(id))).json.interfaceAttachments.map((one: { port_id: string }) => one.port_id);
  /** The total bandwidth that these consumers hold. */
  const bandwidth = async (...consumers: readonly string[]): Promise<number> => {
    const held = await cloud.cells[0]!.store.holdings(consumers);
    const items = held.flatMap((holding) => holding?.items ?? []);
    return items.reduce((sum, item) => sum + (item.resourceClass === EGRESS ? item.amount : 0), 0);
  };
  const gone = (id: string) =>
    eventually("it to be gone", async () => (await cloud.call("GET", `/v2.1/servers/${id}`)).status === 404);
  const remove = async (...ids: readonly string[]) => {
    for (const id of ids) await cloud.call("DELETE", `/v2.1/servers/${id}`);
    await Promise.all(ids.map(gone));
  };
  const expectClean = async () => {
    const { databaseUrl, cells } = cloud;
    const audit = { apiUrl: databaseUrl, cells, pauseMs: 100, patienceMs: 30_000, conductorSettings: [] };
    expect(await auditTwice(audit)).toSatisfy(isClean);
  };

  test("a port is attached and detached with its bandwidth, and belongs to one server at a time", async () => {
    const [{ id }, other] = [await boot(), await boot()];
    const [nic, plain] = [await port(4_000), await port(0)];
    const before = (await cloud.cells[0]!.store.holdings([id]))[0]?.items;
    const attached = await attach(id, nic);
    expect([attached.status, attached.json.interfaceAttachment]).toEqual([
      200,
      {
        ...{ port_id: nic, net_id: NETWORK, port_state: "ACTIVE", fixed_ips: [], tag: null },
        mac_addr: expect.stringMatching(/^fa:16:3e(:[0-9a-f]{2}){3}$/),
      },
    ]);
    expect((await attach(id, plain, 49)).json.interfaceAttachment).not.toHaveProperty("tag");
    expect(await bandwidth(id)).toBe(4_000);
    expect(await portsOf(id)).toEqual([nic, plain]);
    expect((await cloud.call("GET", `${interfaces(id)}/${nic}`)).json).toEqual(attached.json);
    expect((await cloud.call("GET", `/network/v2.0/ports/${nic}`)).json.port).toMatchObject({
      ...{ device_id: id, status: "ACTIVE" },
    });
    expect([(await attach(id, nic)).status, (await attach(other.id, nic)).status]).toEqual([409, 409]);
    expect([(await detach(id, nic)).status, (await detach(id, nic)).status]).toEqual([202, 404]);
    expect((await cloud.cells[0]!.store.holdings([id]))[0]?.items).toEqual(before);
    expect((await attach(other.id, nic)).status).toBe(200);
    await remove(id, other.id);
    expect(await bandwidth(id, other.id)).toBe(0);
  });

  test("a port for which the host has no room is refused, and nothing is changed", async () => {
    const [{ id, host: here }, other] = [await boot(), await boot()];
    const [big, small, elsewhere] = [await port(9_000), await port(2_000), await port(2_000, "B")];
    expect((await attach(id, big)).status).toBe(200);
    const before = await cloud.cells[0]!.store.holdings([id]);
    const refused = await attach(id, small);
    expect(refused.status).toBe(400);
    expect(refused.json.badRequest.message).toContain("Failed to allocate additional resources");
    expect(await cloud.cells[0]!.store.holdings([id])).toEqual(before);
    expect([await portsOf(id), (await show(id)).host]).toEqual([[big], here]);
    // The other interface has room, and the refused port is free again.
    expect((await attach(id, elsewhere)).status).toBe(200);
    expect((await attach(other.id, small)).status).toBe(other.host === here ? 400 : 200);
    await remove(id, other.id);
  });

  test("attached ports move with their server, and ports from the boot can be detached", async () => {
    const [first, second] = [await port(3_000), await port(2_000, "B")];
    const { id, host: here } = await boot({ networks: [{ port: first }] });
    expect(await portsOf(id)).toEqual([first]);
    expect((await attach(id, second)).status).toBe(200);
    await act(id, "os-migrateLive", { host: null, block_migration: "auto" });
    const moved = await settled(id);
    expect([moved.status, moved.host === here]).toEqual(["ACTIVE", false]);
    expect(await bandwidth(id)).toBe(5_000);
    await act(id, "rebuild", { imageRef: "70a599e0-31e7-49b7-b260-868f441e862b" });
    await settled(id);
    expect((await detach(id, first)).status).toBe(202);
    expect(await bandwidth(id)).toBe(2_000);
    await act(id, "resize", { flavorRef: "m" });
    await settled(id);
    expect((await detach(id, second)).status).toBe(409);
    await act(id, "revertResize");
    await settled(id);
    expect((await detach(id, second)).status).toBe(202);
    expect([await bandwidth(id), await portsOf(id)]).toEqual([0, []]);
    await expectClean();
    await remove(id);
  });

  test("are refused like Nova's, with its codes", async () => {
    const { id } = await boot();
    const nic = await port(1_000);
    const nowhere = randomUUID();
    const codes = async (...asked: [unknown, number?][]) =>
      Promise.all(
        asked.map(
          async ([interfaceAttachment, minor]) =>
            (await cloud.call("POST", interfaces(id), { interfaceAttachment }, minor)).status,
        ),
      );
    expect(
      await codes(
        [{ port_id: nowhere }],
        [{ net_id: NETWORK, port_id: nic }],
        [{ port_id: nic, fixed_ips: [{ ip_address: "10.0.0.1" }] }],
        [{ net_id: NETWORK }],
        [{}],
        [{ port_id: "x" }],
        [{ port_id: nic, tag: "a" }, 48],
        [{ port_id: nic, tag: "a,b" }],
        [{ port_id: nic, color: "red" }],
      ),
    ).toEqual([404, 400, 400, 400, 400, 400, 400, 400, 400]);
    expect((await attach(nowhere, nic)).status).toBe(404);
    expect((await cloud.call("GET", interfaces(nowhere))).status).toBe(404);
    expect((await cloud.call("GET", `${interfaces(id)}/${nic}`)).status).toBe(404);
    expect((await detach(id, nic)).status).toBe(404);
    await act(id, "shelve");
    await settled(id);
    const shelved = await attach(id, nic);
    expect([shelved.status, shelved.json.conflictingRequest.message]).toEqual([
      409,
      `Cannot 'attach_interface' instance ${id} while it is in vm_state shelved`,
    ]);
    await remove(id);
  });

  test("of two attaches for the last bandwidth of a host, one gets it", async () => {
    const { id, host: here } = await boot();
    const other = await boot({ availability_zone: `nova:${here}` });
    expect(other.host).toBe(here);
    const wanted = await Promise.all([id, other.id].map(async (server) => [server, await port(6_000)] as const));
    const answers = await Promise.all(wanted.map(([server, nic]) => attach(server, nic)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400]);
    expect(await bandwidth(id, other.id)).toBe(6_000);
    await remove(id, other.id);
  });

  test("of two servers for one port, one gets it", async () => {
    const servers = await Promise.all([boot(), boot()]);
    const nic = await port(1_000);
    const answers = await Promise.all(servers.map(({ id }) => attach(id, nic)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect((await Promise.all(servers.map(({ id }) => portsOf(id)))).flat()).toEqual([nic]);
    await remove(...servers.map(({ id }) => id));
  });

  test("attach against detach: each is done completely, whichever comes first", async () => {
    const { id } = await boot();
    const [stays, comes, leaves] = [await port(1_000), await port(2_000), await port(4_000)];
    for (const nic of [stays, leaves]) await attach(id, nic);
    const answers = await Promise.all([attach(id, comes), detach(id, leaves), detach(id, leaves)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 202, 404]);
    expect([await bandwidth(id), await portsOf(id)]).toEqual([3_000, [stays, comes]]);
    await remove(id);
  });

  test("attach against delete: nothing is left of either", async () => {
    const { id } = await boot();
    const nic = await port(1_000);
    const [attached] = await Promise.all([attach(id, nic), cloud.call("DELETE", `/v2.1/servers/${id}`)]);
    expect([200, 404, 409]).toContain(attached.status);
    await gone(id);
    expect(await bandwidth(id)).toBe(0);
    const { id: next } = await boot();
    expect((await attach(next, nic)).status).toBe(200);
    await expectClean();
    await remove(next);
  });

  test("attach against a resize: the port is refused, or moves with the server", async () => {
    const { id } = await boot();
    const nic = await port(1_000);
    const [attached] = await Promise.all([attach(id, nic), act(id, "resize", { flavorRef: "m" })]);
    expect([200, 409]).toContain(attached.status);
    expect((await settled(id)).status).toBe("VERIFY_RESIZE");
    await act(id, "confirmResize");
    await settled(id);
    const has = attached.status === 200;
    expect([await bandwidth(id), await portsOf(id)]).toEqual(has ? [1_000, [nic]] : [0, []]);
    await expectClean();
    await remove(id);
  });
});
