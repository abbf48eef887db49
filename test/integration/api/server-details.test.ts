import { afterEach, beforeEach, expect, test } from "vitest";
import { cellConsolesSubject } from "../../../adapters/nats/streams.ts";
import { ConsoleAnswer, ConsoleQuestion } from "../../../proto/gen/berth/cell.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2", networks: "simple" });
});
afterEach(() => rig.close());

const OWNER = "dora:p";
const ADMIN = "admin:p";
const as = (token: string, minor = 96) => ({ "x-auth-token": token, "openstack-api-version": `compute 2.${minor}` });
const active = async (fields: object = {}): Promise<string> => {
  const server = { name: "web", flavorRef: "1", networks: "none", ...fields };
  const { id } = (await rig.post("/v2.1/servers", { server }, as(OWNER))).json().server;
  const task = await rig.dispatch(id, "north", [0]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  return id;
};
const get = (id: string, path: string, token = OWNER, minor = 96) =>
  rig.get(`/v2.1/servers/${id}/${path}`, as(token, minor));
const toldAt = async (id: string, path: string, token = OWNER, minor = 96) => {
  const answer = await get(id, path, token, minor);
  return [answer.statusCode, answer.json()];
};

test("addresses and security groups are those that the server itself shows", async () => {
  const id = await active();
  const { server } = (await rig.get(`/v2.1/servers/${id}`, as(OWNER))).json();
  expect(await toldAt(id, "ips", OWNER, 1)).toEqual([200, { addresses: server.addresses }]);
  expect(await toldAt(id, "ips/private")).toEqual([
    404,
    { itemNotFound: { code: 404, message: "Instance is not a member of specified network" } },
  ]);
  // A name that every object has is not a network, either.
  expect((await get(id, "ips/constructor")).statusCode).toBe(404);
  expect(await toldAt(id, "os-volume_attachments", OWNER, 1)).toEqual([200, { volumeAttachments: [] }]);
  expect(server.security_groups).toBeUndefined();
  expect(await toldAt(id, "os-security-groups", OWNER, 1)).toEqual([200, { security_groups: [] }]);
  const withPort = await active({ networks: "auto" });
  const { server: connected } = (await rig.get(`/v2.1/servers/${withPort}`, as(OWNER))).json();
  const [status, { security_groups: groups }] = await toldAt(withPort, "os-security-groups", OWNER, 1);
  expect([status, groups.map(({ name }: { name: string }) => ({ name }))]).toEqual([200, connected.security_groups]);
  expect(groups[0]).toEqual({
    id: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
    ...{ name: "default", description: "Default security group", tenant_id: "p" },
    rules: expect.arrayContaining([expect.objectContaining({ group: { name: "default", tenant_id: "p" } })]),
  });
  const other = (await toldAt(await active({ networks: "auto" }), "os-security-groups"))[1];
  expect(other.security_groups[0].id).toBe(groups[0].id);
});

test("the password is empty, and may be removed", async () => {
  const id = await active();
  expect(await toldAt(id, "os-server-password", OWNER, 1)).toEqual([200, { password: "" }]);
  const removed = await rig.delete(`/v2.1/servers/${id}/os-server-password`, as(OWNER));
  expect([removed.statusCode, removed.body]).toEqual([204, ""]);
  expect((await rig.delete(`/v2.1/servers/${id}/os-server-password`, as("eve:q"))).statusCode).toBe(404);
});

test("the topology has the NUMA nodes that flavors lay out, from 2.78 on", async () => {
  const plain = await active();
  expect(await toldAt(plain, "topology", OWNER, 77)).toEqual([
    404,
    { itemNotFound: { code: 404, message: "The resource could not be found." } },
  ]);
  expect(await toldAt(plain, "topology", OWNER, 78)).toEqual([200, { nodes: [], pagesize_kb: null }]);
  const ofFlavor = async (id: string, specs: object) => {
    const flavor = { id, name: id, vcpus: 4, ram: 4096, disk: 1 };
    expect((await rig.post("/v2.1/flavors", { flavor }, as(ADMIN))).statusCode).toBe(200);
    await rig.post(`/v2.1/flavors/${id}/os-extra_specs`, { extra_specs: specs }, as(ADMIN));
    return (await toldAt(await active({ flavorRef: id }), "topology"))[1];
  };
  const node = { memory_mb: 2048, siblings: [] };
  expect(await ofFlavor("two-nodes", { "hw:numa_nodes": "2", "hw:mem_page_size": "2MB" })).toEqual({
    nodes: [
      { ...node, vcpu_set: [0, 1] },
      { ...node, vcpu_set: [2, 3] },
    ],
    pagesize_kb: 2048,
  });
  const whole = { nodes: [{ memory_mb: 4096, siblings: [], vcpu_set: [0, 1, 2, 3] }], pagesize_kb: null };
  expect(await ofFlavor("pinned", { "hw:cpu_policy": "dedicated" })).toEqual(whole);
});

test("administrators see the CPUs and nodes of the host that the host tells, and neither when it cannot tell", async () => {
  const flavor = { id: "pinned", name: "pinned", vcpus: 4, ram: 4096, disk: 1 };
  await rig.post("/v2.1/flavors", { flavor }, as(ADMIN));
  const extraSpecs = { "hw:cpu_policy": "dedicated", "hw:numa_nodes": "2", "hw:mem_page_size": "large" };
  await rig.post("/v2.1/flavors/pinned/os-extra_specs", { extra_specs: extraSpecs }, as(ADMIN));
  const [id, plain] = [await active({ flavorRef: "pinned" }), await active()];
  const asked: ConsoleQuestion[] = [];
  let answer: ConsoleAnswer["answer"] = {
    $case: "pinning",
    value: { cpus: { 0: 4, 1: 12, 2: 9, 3: 1 }, nodes: [1, -1], pageKib: 1_048_576 },
  };
  await rig.cell("north").bus.answer(cellConsolesSubject("north"), async (question) => {
    asked.push(ConsoleQuestion.decode(question));
    return ConsoleAnswer.encode({ answer }).finish();
  });
  const node = { memory_mb: 2048, siblings: [] };
  const nodes = [
    { ...node, vcpu_set: [0, 1] },
    { ...node, vcpu_set: [2, 3] },
  ];
  expect(await toldAt(id, "topology")).toEqual([200, { nodes, pagesize_kb: null }]);
  expect(await toldAt(plain, "topology", ADMIN)).toEqual([200, { nodes: [], pagesize_kb: null }]);
  expect(asked).toEqual([]);
  expect(await toldAt(id, "topology", ADMIN)).toEqual([
    200,
    {
      nodes: [
        { ...nodes[0], host_node: 1, cpu_pinning: { 0: 4, 1: 12 } },
        { ...nodes[1], cpu_pinning: { 2: 9, 3: 1 } },
      ],
      pagesize_kb: 1_048_576,
    },
  ]);
  const [found] = await rig.cell("north").store.servers([id]);
  expect(asked).toMatchObject([{ host: found?.host, serverUuid: id, attemptId: found?.attemptId, pinning: true }]);
  // The second is the answer of a conductor of an older version.
  for (const other of [
    { $case: "failed", value: "the agent of its host did not answer in time" } as const,
    { $case: "output", value: Buffer.from("") } as const,
  ]) {
    answer = other;
    expect(await toldAt(id, "topology", ADMIN)).toEqual([200, { nodes, pagesize_kb: null }]);
  }
});

test("diagnostics are for admins, and show the known facts of a running server", async () => {
  const id = await active({ config_drive: true });
  expect(await toldAt(id, "diagnostics")).toEqual([
    403,
    expect.objectContaining({
      forbidden: { code: 403, message: "Policy doesn't allow os_compute_api:os-server-diagnostics to be performed." },
    }),
  ]);
  const { flavor } = (await rig.get("/v2.1/flavors/1", as(ADMIN))).json();
  expect(await toldAt(id, "diagnostics", ADMIN, 48)).toEqual([
    200,
    {
      ...{ state: "running", driver: "libvirt", hypervisor: null, hypervisor_os: null, config_drive: true },
      ...{ num_cpus: flavor.vcpus, num_nics: 0, num_disks: null, uptime: expect.any(Number) },
      ...{ cpu_details: [], nic_details: [], disk_details: [], memory_details: { maximum: flavor.ram, used: null } },
    },
  ]);
  expect(await toldAt(id, "diagnostics", ADMIN, 47)).toEqual([200, { memory: flavor.ram * 1024 }]);
  expect((await get("7a7a7a7a-7a7a-4a7a-8a7a-7a7a7a7a7a7a", "diagnostics", ADMIN)).statusCode).toBe(404);
});

test("diagnostics show what the host has measured of the guest, when it answers", async () => {
  const id = await active();
  const disk = { readBytes: 4_096, readRequests: 2, writeBytes: 512, writeRequests: 1, errors: 0 };
  const traffic = {
    rxBytes: 9,
    rxPackets: 8,
    rxErrors: 7,
    rxDropped: 6,
    txBytes: 5,
    txPackets: 4,
    txErrors: 3,
    txDropped: 2,
  };
  const interfaces = [{ portId: "of-no-port-that-the-server-has", ...traffic }];
  const value = { uptimeS: 77, vcpuTimesUs: [17_300_000, 20], disks: [disk, disk], memoryUsedKib: 65_536, interfaces };
  let answer: ConsoleAnswer["answer"] = { $case: "diagnostics", value };
  await rig.cell("north").bus.answer(cellConsolesSubject("north"), async (question) => {
    expect(ConsoleQuestion.decode(question)).toMatchObject({ serverUuid: id, diagnostics: true });
    return ConsoleAnswer.encode({ answer }).finish();
  });
  const [status, told] = await toldAt(id, "diagnostics", ADMIN, 48);
  const shown = { read_bytes: 4_096, read_requests: 2, write_bytes: 512, write_requests: 1, errors_count: 0 };
  const cpus = [
    { id: 0, time: 17_300_000_000, utilisation: null },
    { id: 1, time: 20_000, utilisation: null },
  ];
  expect([status, told]).toEqual([
    200,
    expect.objectContaining({
      ...{ uptime: 77, num_disks: 2, cpu_details: cpus, disk_details: [shown, shown] },
      memory_details: { maximum: expect.any(Number), used: 64 },
    }),
  ]);
  const [, older] = await toldAt(id, "diagnostics", ADMIN, 47);
  expect(older).toMatchObject({
    ...{ cpu0_time: 17_300_000_000, cpu1_time: 20_000, "memory-rss": 65_536 },
    ...{ vda_read: 4_096, vda_read_req: 2, vdb_write: 512, vdb_write_req: 1, vdb_errors: 0 },
    ...{ vnet1_rx: 9, vnet1_rx_packets: 8, vnet1_rx_errors: 7, vnet1_rx_drop: 6, vnet1_tx: 5, vnet1_tx_drop: 2 },
  });
  answer = { $case: "failed", value: "the agent of its host did not answer in time" };
  expect((await toldAt(id, "diagnostics", ADMIN, 48))[1]).toMatchObject({ num_disks: null, cpu_details: [] });
});

test("diagnostics are refused for a server that has no host, does not run, or whose cell does not answer", async () => {
  const server = { name: "web", flavorRef: "1", networks: "none" };
  const { id: waiting } = (await rig.post("/v2.1/servers", { server }, as(OWNER))).json().server;
  const refusal = (message: string) => [409, { conflictingRequest: { code: 409, message } }];
  expect(await toldAt(waiting, "diagnostics", ADMIN)).toEqual(refusal(`Instance ${waiting} is not ready`));
  await rig.dispatch(waiting, "north", [1]);
  expect(await toldAt(waiting, "diagnostics", ADMIN)).toEqual(
    refusal(`Cannot 'get_diagnostics' instance ${waiting} while it is in power state pending`),
  );
  const id = await active();
  rig.cell("north").dead = true;
  expect((await get(id, "diagnostics", ADMIN)).statusCode).toBe(503);
  rig.cell("north").dead = false;
});
