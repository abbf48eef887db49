import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { QUOTA_DEFAULTS } from "../../../services/api/compute/quotas/quota-defaults.ts";
import { answerInterfaces } from "../../rigs/answer-interfaces.ts";
import { eventually } from "../../rigs/eventually.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ networks: "simple", quotas: { ...QUOTA_DEFAULTS.unlimited, instances: 3 } });
});
afterEach(() => rig.close());

const as = (project: string, minor = 90) => ({
  "x-project-id": project,
  "openstack-api-version": `compute 2.${minor}`,
});
const read = async (path: string, project = "p") => (await rig.get(`/network/v2.0/${path}`, as(project))).json();
const network = async () => (await read("networks")).networks[0];
const create = (fields: object, project = "p", minor = 90) =>
  rig.post("/v2.1/servers", { server: { name: "web", flavorRef: "1", ...fields } }, as(project, minor));
const boot = async (fields: object = { networks: "auto" }, minor = 90): Promise<string> => {
  const answer = await create(fields, "p", minor);
  expect([answer.statusCode, answer.body]).toEqual([202, expect.anything()]);
  return answer.json().server.id;
};
const active = async (fields?: object): Promise<string> => {
  const id = await boot(fields);
  const task = await rig.dispatch(id, "north", [0]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  return id;
};
const show = async (id: string) => (await rig.get(`/v2.1/servers/${id}`, as("p"))).json().server;
const addresses = async (id: string): Promise<string[]> =>
  Object.values<{ addr: string }[]>((await show(id)).addresses)
    .flat()
    .map(({ addr }) => addr);
const portsOf = async (id: string) => (await read(`ports?device_id=${id}`)).ports;

test("clients find one network with its subnet, the project's own security group, and nothing that they could change", async () => {
  const { id, subnets, shared, name } = await network();
  expect([shared, name]).toEqual([true, "shared"]);
  expect((await read("networks?name=other")).networks).toEqual([]);
  expect((await read("networks?name=shared&fields=id")).networks).toEqual([{ id }]);
  expect((await read(`networks/${id}`)).network.name).toBe("shared");
  expect((await rig.get(`/network/v2.0/networks/${randomUUID()}`, as("p"))).statusCode).toBe(404);
  expect((await read(`subnets/${subnets[0]}`)).subnet).toMatchObject({ network_id: id, cidr: "10.64.0.0/10" });
  const [own] = (await read("security-groups?name=default")).security_groups;
  expect(own).toMatchObject({ name: "default", project_id: "p" });
  expect((await read("security-groups", "q")).security_groups[0].id).not.toBe(own.id);
  expect((await read(`security-group-rules?security_group_id=${own.id}`)).security_group_rules).toHaveLength(4);
  expect(await read("floatingips")).toEqual({ floatingips: [] });
  expect((await read("extensions")).extensions.map(({ alias }: { alias: string }) => alias)).toContain(
    "security-group",
  );
  expect((await read("quotas/p")).quota.port).toBe(-1);
  for (const collection of ["networks", "subnets", "floatingips"])
    expect((await rig.post(`/network/v2.0/${collection}`, {}, as("p"))).statusCode).toBe(403);
});

test("a server gets a port with an address, which it shows everywhere, until it is gone", async () => {
  const id = await active();
  const [address = ""] = await addresses(id);
  const [port] = await portsOf(id);
  expect(port).toMatchObject({ device_owner: "compute:nova", status: "ACTIVE", project_id: "p" });
  expect(port.fixed_ips).toEqual([{ subnet_id: (await network()).subnets[0], ip_address: address }]);
  expect((await show(id)).addresses.shared).toEqual([
    { version: 4, addr: address, "OS-EXT-IPS:type": "fixed", "OS-EXT-IPS-MAC:mac_addr": port.mac_address },
  ]);
  const renamed = await rig.put(`/v2.1/servers/${id}`, { server: { name: "renamed" } }, as("p", 74));
  expect(renamed.json().server.addresses).toEqual({ shared: [{ version: 4, addr: address }] });
  const { interfaceAttachments } = (await rig.get(`/v2.1/servers/${id}/os-interface`, as("p"))).json();
  expect(interfaceAttachments).toMatchObject([
    { port_id: port.id, net_id: port.network_id, fixed_ips: port.fixed_ips, mac_addr: port.mac_address },
  ]);
  expect((await rig.get(`/v2.1/servers/${id}/ips`, as("p"))).json()).toEqual({
    addresses: { shared: [{ version: 4, addr: address }] },
  });
  const found = async (ip: string) => (await rig.get(`/v2.1/servers?ip=${ip}`, as("p"))).json().servers.length;
  expect([await found(address.replaceAll(".", "\\.")), await found("192.0.2.1")]).toEqual([1, 0]);
  expect((await rig.delete(`/v2.1/servers/${id}`, as("p"))).statusCode).toBe(204);
  await rig.tellDeleted("north", id);
  await eventually("the port's end", async () => (await portsOf(id)).length === 0);
});

test("servers of one call, and of calls at once, have addresses of their own", async () => {
  const [many, one] = await Promise.all([
    create({ networks: "auto", min_count: 2, return_reservation_id: true }),
    boot({}, 36),
  ]);
  expect(many.statusCode).toBe(202);
  const { servers } = (await rig.get("/v2.1/servers/detail", as("p"))).json();
  expect(servers.map(({ id }: { id: string }) => id)).toContain(one);
  const shown = await Promise.all(servers.map(({ id }: { id: string }) => addresses(id)));
  expect(shown.map((own) => own.length)).toEqual([1, 1, 1]);
  expect(new Set(shown.flat()).size).toBe(3);
});

test("a server asks for the network, an address, a port, or for none of them, in its own order", async () => {
  const { id: uuid } = await network();
  expect(await portsOf(await boot({ networks: "none" }))).toEqual([]);
  const made = await rig.post("/network/v2.0/ports", { port: { network_id: uuid, name: "nic" } }, as("p"));
  expect(made.statusCode).toBe(201);
  const { port } = made.json();
  const networks = [{ uuid, fixed_ip: "10.64.9.9" }, { port: port.id }];
  const id = await boot({ networks });
  expect(await addresses(id)).toEqual(["10.64.9.9", port.fixed_ips[0].ip_address]);
  expect((await portsOf(id)).map((one: { id: string }) => one.id)).toContain(port.id);
  // A port that was not made for the server outlives it.
  await rig.delete(`/v2.1/servers/${id}`, as("p"));
  await rig.store.markDeleted([{ cell: null, serverUuid: id }]);
  expect(await rig.networkPorts.sweepPorts(600_000)).toBe(2);
  expect(await portsOf(id)).toEqual([]);
  expect((await read(`ports/${port.id}`)).port.name).toBe("nic");
});

test.each([
  ["another network", { networks: [{ uuid: randomUUID() }] }, "could not be found"],
  ["an address outside of the network", { fixed_ip: "192.0.2.1" }, "is not one of network"],
  ["the gateway's address", { fixed_ip: "10.64.0.1" }, "is not one of network"],
  ["an address that is in use", { fixed_ip: "10.64.7.7" }, "already in use"],
  ["one address for two servers", { fixed_ip: "10.64.8.8", min_count: 2 }, "several servers"],
  ["a word before 2.37", { networks: "auto" }, "networks. Value: auto. 'auto' is not of type 'array'", 36],
  ["another security group", { networks: "auto", security_groups: [{ name: "web" }] }, "Security group web not found"],
] as const)("refuses %s, and makes no port", async (_what, asked, why, minor?: number) => {
  const { id: uuid } = await network();
  await boot({ networks: [{ uuid, fixed_ip: "10.64.7.7" }] });
  const { fixed_ip, ...fields } = asked as { readonly fixed_ip?: string };
  const refused = await create({ ...(fixed_ip && { networks: [{ uuid, fixed_ip }] }), ...fields }, "p", minor);
  expect([refused.statusCode, refused.body]).toEqual([400, expect.stringContaining(why)]);
  expect((await read("ports")).ports).toHaveLength(1);
});

test("a call that is refused after its ports were made leaves none of them", async () => {
  const refused = await create({ networks: "auto", min_count: 4 });
  expect([refused.statusCode, refused.body]).toEqual([403, expect.stringContaining("Quota exceeded")]);
  expect((await read("ports")).ports).toEqual([]);
});

test("servers of a call that the quota cuts off leave no ports", async () => {
  const cut = await create({ networks: "auto", min_count: 1, max_count: 5, return_reservation_id: true });
  expect([cut.statusCode, cut.body]).toEqual([202, expect.anything()]);
  const { servers } = (await rig.get("/v2.1/servers", as("p"))).json();
  const holders = (await read("ports")).ports.map(({ device_id }: { device_id: string }) => device_id);
  expect(holders.sort()).toEqual(servers.map(({ id }: { id: string }) => id).sort());
  expect(holders).toHaveLength(3);
});

test("an interface comes with an address and goes with it, and a refused one leaves no port", async () => {
  await answerInterfaces(rig.cell("north").bus, "north");
  const id = await active({ networks: "none" });
  const { id: net_id } = await network();
  const attach = (interfaceAttachment: object) =>
    rig.post(`/v2.1/servers/${id}/os-interface`, { interfaceAttachment }, as("p"));
  const fixed_ips = [{ ip_address: "10.64.5.5" }];
  const attached = (await attach({ net_id, fixed_ips })).json().interfaceAttachment;
  expect(attached.fixed_ips).toMatchObject([{ ip_address: "10.64.5.5" }]);
  expect((await attach({})).json().interfaceAttachment.net_id).toBe(net_id);
  expect(await addresses(id)).toHaveLength(2);
  expect((await attach({ net_id, fixed_ips })).statusCode).toBe(400);
  expect((await attach({ net_id: randomUUID() })).statusCode).toBe(404);
  expect(await portsOf(id)).toHaveLength(2);
  expect((await rig.delete(`/v2.1/servers/${id}/os-interface/${attached.port_id}`, as("p"))).statusCode).toBe(202);
  expect((await portsOf(id)).map((port: { id: string }) => port.id)).not.toContain(attached.port_id);
  expect(await addresses(id)).toHaveLength(1);
});

test("a server gets only so many ports, also by calls at the same time, so that it cannot take every address", async () => {
  await answerInterfaces(rig.cell("north").bus, "north");
  const { id: uuid } = await network();
  const id = await active({ networks: Array.from({ length: 62 }, () => ({ uuid })) });
  const attach = () => rig.post(`/v2.1/servers/${id}/os-interface`, { interfaceAttachment: {} }, as("p"));
  const answers = await Promise.all(Array.from({ length: 5 }, attach));
  expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([200, 200, 403, 403, 403]);
  const last = await attach();
  expect([last.statusCode, last.json().forbidden.message]).toEqual([
    403,
    "Maximum number of ports exceeded: a server has at most 64. Detach one that it does not need.",
  ]);
  // A call that is refused leaves no port behind.
  expect([(await addresses(id)).length, (await read("ports")).ports.length]).toEqual([64, 64]);
});

test("ports are found by their fields, renamed, and shown only to their project", async () => {
  const id = await boot();
  const [port] = await portsOf(id);
  const renamed = await rig.put(`/network/v2.0/ports/${port.id}`, { port: { name: "front" } }, as("p"));
  expect(renamed.json().port).toMatchObject({ id: port.id, name: "front" });
  const count = async (query: string) => (await read(`ports?${query}`)).ports.length;
  expect(await count("name=front")).toBe(1);
  expect(await count("name=back")).toBe(0);
  expect(await count(`fixed_ips=ip_address%3D${port.fixed_ips[0].ip_address}`)).toBe(1);
  expect(await count("status=DOWN")).toBe(0);
  expect(await count("project_id=q")).toBe(0);
  expect(await count("constructor=x")).toBe(1);
  const other = await boot();
  expect(await count(`device_id=${id}&device_id=${other}`)).toBe(2);
});

test("a project makes only so many ports of its own, also in calls at the same time, beside those of its servers", async () => {
  const small = await ApiRig.start({ networks: "simple", portsPerProjectMax: 3 });
  try {
    const { id: network_id } = (await small.get("/network/v2.0/networks", as("p"))).json().networks[0];
    const make = (project: string) => small.post("/network/v2.0/ports", { port: { network_id } }, as(project));
    expect((await make("p")).statusCode).toBe(201);
    const codes = (await Promise.all(Array.from({ length: 6 }, () => make("p")))).map(({ statusCode }) => statusCode);
    expect(new Set(codes)).toEqual(new Set([201, 409]));
    const listed = (await small.get("/network/v2.0/ports", as("p"))).json().ports as { id: string }[];
    expect(listed.length).toBe(1 + codes.filter((code) => code === 201).length);
    expect(listed.length).toBeLessThanOrEqual(3);
    while ((await make("p")).statusCode === 201);
    expect((await make("p")).json().conflictingRequest?.message ?? (await make("p")).body).toMatch(/Quota exceeded/);
    expect((await small.get("/network/v2.0/ports", as("p"))).json().ports).toHaveLength(3);
    expect((await make("q")).statusCode).toBe(201);
    const server = { name: "web", flavorRef: "1", networks: "auto" };
    expect((await small.post("/v2.1/servers", { server }, as("p"))).statusCode).toBe(202);
    expect((await small.delete(`/network/v2.0/ports/${listed[0]?.id}`, as("p"))).statusCode).toBe(204);
    expect((await make("p")).statusCode).toBe(201);
  } finally {
    await small.close();
  }
});
