import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { cellEventsSubject } from "../../../adapters/nats/streams.ts";
import type { NeutronPort } from "../../../core/stores/networking.ts";
import { CellEvent, EventKind } from "../../../proto/gen/berth/cell.ts";
import { NeutronPortSettler } from "../../../services/api/compute/neutron-ports/neutron-port-settler.ts";
import { QUOTA_DEFAULTS } from "../../../services/api/compute/quotas/quota-defaults.ts";
import { hostName } from "../../contract/cell-fixtures.ts";
import { OWN_NETWORK, putContractNetworks, SHARED_NETWORK } from "../../contract/networking.contract.ts";
import { answerInterfaces } from "../../rigs/answer-interfaces.ts";
import { eventually } from "../../rigs/eventually.ts";
import { ApiRig } from "./api-rig.ts";

const HOST = hostName(0);

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({
    ...{ networks: "neutron", auth: "noauth2", quotas: { ...QUOTA_DEFAULTS.unlimited, instances: 3 } },
  });
  putContractNetworks(rig.networking);
});
afterEach(() => rig.close());

/** A member of the project, or, for `admin:…`, an admin. */
const as = (token: string, minor = 90) => ({
  "x-auth-token": token,
  "openstack-api-version": `compute 2.${minor}`,
});
const create = (fields: object, token = "ann:one", minor = 90) =>
  rig.post("/v2.1/servers", { server: { name: "web", flavorRef: "1", ...fields } }, as(token, minor));
const boot = async (fields: object = { networks: [{ uuid: OWN_NETWORK }] }): Promise<string> => {
  const answer = await create(fields);
  expect([answer.statusCode, answer.body]).toEqual([202, expect.anything()]);
  return answer.json().server.id;
};
const active = async (fields?: object): Promise<string> => {
  const id = await boot(fields);
  const task = await rig.dispatch(id, "north", [0]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  return id;
};
const show = async (id: string) => (await rig.get(`/v2.1/servers/${id}`, as("ann:one"))).json().server;
const portsOf = (id: string): readonly NeutronPort[] => rig.networking.all().filter(({ deviceId }) => deviceId === id);
const userPort = (values: Partial<NeutronPort> = {}) =>
  rig.networking.putPort({ projectId: "one", networkId: OWN_NETWORK, ...values });
/** Everything that is due is looked at once, as if a note had been open for longer than any call takes. */
async function settleOld(): Promise<void> {
  for (const note of await rig.portNotes.dueNotes(-1_000, null, 100)) await rig.portNotes.endServers([note.id]);
}
const portIs = (id: string) => rig.networking.all().find((port) => port.id === id);

test("a server gets a port in Neutron, whose address and MAC it shows, and the port ends with it", async () => {
  const id = await active();
  const [port] = portsOf(id);
  expect(port).toMatchObject({ projectId: "one", networkId: OWN_NETWORK });
  const [{ address = "" } = {}] = port?.fixedAddresses ?? [];
  expect((await show(id)).addresses).toEqual({
    own: [{ version: 4, addr: address, "OS-EXT-IPS:type": "fixed", "OS-EXT-IPS-MAC:mac_addr": port?.macAddress }],
  });
  const listed = (await rig.get(`/v2.1/servers/${id}/os-interface`, as("ann:one"))).json().interfaceAttachments;
  expect(listed).toEqual([
    {
      ...{ port_state: "DOWN", port_id: port?.id, net_id: OWN_NETWORK, mac_addr: port?.macAddress, tag: null },
      fixed_ips: [{ subnet_id: port?.fixedAddresses[0]?.subnetId, ip_address: address }],
    },
  ]);
});

test("ends the ports of a deleted server: those made for it are deleted, and those of users are unbound", async () => {
  const own = userPort();
  const id = await boot({ networks: [{ uuid: OWN_NETWORK }, { port: own.id }] });
  expect(portsOf(id)).toHaveLength(2);
  await rig.delete(`/v2.1/servers/${id}`, as("ann:one"));
  await eventually("the end of the ports", () => portsOf(id).length === 0);
  expect(rig.networking.all()).toMatchObject([{ id: own.id, deviceId: "", host: "" }]);
  await eventually("the end of the note", async () => (await rig.portNotes.notes([id])).length === 0);
});

test.each(["silent", "hanging"] as const)(
  "servers are shown without their groups while Neutron is %s",
  async (kind) => {
    const id = await boot();
    rig.networking.fate = () => "silent";
    if (kind === "hanging") rig.networking.ports = () => new Promise(() => {});
    expect(await show(id)).toMatchObject({ id, addresses: { own: [{ version: 4 }] } });
    expect(await show(id)).not.toHaveProperty("security_groups");
  },
);

test("ends no port while Neutron is silent, and does it when it answers again", async () => {
  const id = await boot();
  rig.networking.fate = () => "silent";
  await rig.delete(`/v2.1/servers/${id}`, as("ann:one"));
  await eventually("the note of the end", async () => (await rig.portNotes.dueNotes(600_000, null, 1)).length === 1);
  expect(portsOf(id)).toHaveLength(1);
  rig.networking.fate = () => "answered";
  await eventually("the end of the port", () => portsOf(id).length === 0);
});

test("ends no port of a deleted server while the cell cannot say that no host has a guest of it", async () => {
  const id = await active();
  rig.cell("north").dead = true;
  await rig.store.cancel(id, "req-1");
  await rig.store.markDeleted([{ cell: "north", serverUuid: id }]);
  await rig.portNotes.endServers([id]);
  const settler = new NeutronPortSettler({ ...settlerDeps(), cells: new Map() }, { pollMs: 60_000 });
  await settler.settle();
  expect(portsOf(id)).toHaveLength(1);
});

function settlerDeps() {
  return {
    floatingIps: rig.networking.floatingIps,
    ...{ networking: rig.networking, notes: rig.portNotes, store: rig.store, events: { portsNotSwept: () => {} } },
    clock: { now: () => Date.now(), monotonic: () => performance.now(), setTimer: () => ({ cancel: () => {} }) },
  };
}

test("releases the ports of a server whose build failed", async () => {
  const own = userPort();
  const id = await boot({ networks: [{ uuid: OWN_NETWORK }, { port: own.id }] });
  const task = await rig.dispatch(id, "north", [0]);
  const tenure = await rig.take("north", task);
  await rig.cell("north").store.commitError([{ ...tenure, selection: 0, attemptReason: "no disk", reason: "no disk" }]);
  const event = CellEvent.create({ kind: EventKind.EVENT_KIND_SERVER_ERROR, cell: "north", serverUuid: id, atMs: 1 });
  await rig.cell("north").bus.publish(cellEventsSubject("north"), CellEvent.encode(event).finish());
  await eventually("the end of the ports", () => portsOf(id).length === 0);
  expect(portIs(own.id)).toMatchObject({ deviceId: "" });
  expect((await show(id)).status).toBe("ERROR");
});

test.each([
  ["an unknown network", { networks: [{ uuid: randomUUID() }] }, 400, /^Network .* could not be found\.$/],
  ["an unknown port", { networks: [{ port: randomUUID() }] }, 400, /^Port id .* could not be found\.$/],
  ["two networks to choose from", { networks: "auto" }, 409, /^Multiple possible networks found/],
  ["two networks to choose from, without asking for any", {}, 409, /^Multiple possible networks found/, 36],
  ["an address outside of the network", { fixed_ip: "192.0.2.1" }, 400, /not a valid IP/],
  [
    "an address that is in use",
    { fixed_ip: "10.1.0.12" },
    400,
    /^Fixed IP address 10\.1\.0\.12 is already in use on instance/,
  ],
  [
    "one address for two servers",
    { fixed_ip: "10.1.0.13", min_count: 2 },
    400,
    /^Failed to launch instances: .*fixed_ip/,
  ],
  ["an item without a network", { networks: [{ tag: "a" }] }, 400, /^Bad network format: missing 'uuid'$/],
] as const)("refuses %s as Nova does, and changes nothing", async (_what, asked, status, why, minor?: number) => {
  userPort({ fixedAddresses: [{ address: "10.1.0.12", subnetId: "s" }], deviceId: randomUUID() });
  const { fixed_ip, ...fields } = asked as { readonly fixed_ip?: string };
  const body = { ...(fixed_ip && { networks: [{ uuid: OWN_NETWORK, fixed_ip }] }), ...fields };
  const refused = await create(body, "ann:one", minor ?? 90);
  expect([refused.statusCode, Object.values<{ message: string }>(refused.json())[0]?.message]).toEqual([
    status,
    expect.stringMatching(why),
  ]);
  expect(rig.networking.all()).toHaveLength(1);
  expect(await rig.portNotes.dueNotes(-1_000, null, 10)).toEqual([]);
});

test("refuses ports that are in use, of other projects, without an address, twice, or for many servers", async () => {
  const used = userPort({ deviceId: randomUUID() });
  const others = userPort({ projectId: "two" });
  const bare = userPort({ fixedAddresses: [] });
  const [free] = [userPort()];
  const refusal = async (networks: object[], more: object = {}) => {
    const refused = await create({ networks, ...more });
    return [refused.statusCode, Object.values<{ message: string }>(refused.json())[0]?.message];
  };
  expect(await refusal([{ port: used.id }])).toEqual([409, `Port ${used.id} is still in use.`]);
  expect(await refusal([{ port: others.id }])).toEqual([400, `Port id ${others.id} could not be found.`]);
  expect(await refusal([{ port: bare.id }])).toEqual([400, `Port ${bare.id} requires a FixedIP in order to be used.`]);
  const twice = await refusal([{ port: free!.id }, { port: free!.id }]);
  expect(twice).toEqual([400, expect.stringContaining("was specified twice")]);
  expect(await refusal([{ port: free!.id }], { min_count: 2 })).toEqual([
    400,
    expect.stringContaining("single configured port"),
  ]);
  const withAddress = await refusal([{ port: free!.id, fixed_ip: "10.1.0.13" }]);
  expect(withAddress).toEqual([400, expect.stringContaining("cannot be used with port")]);
  expect(rig.networking.all().map(({ revision }) => revision)).toEqual([1, 1, 1, 1]);
});

test("a project with one network gets it without naming it, and one without any gets none, or the one that Neutron makes", async () => {
  const networksOf = async (token: string, networks: "auto" | undefined) => {
    const answer = await create(networks === undefined ? {} : { networks }, token, networks === undefined ? 36 : 90);
    if (answer.statusCode !== 202) return answer.statusCode;
    return portsOf(answer.json().server.id).map(({ networkId }) => networkId);
  };
  expect(await networksOf("bob:two", "auto")).toEqual([SHARED_NETWORK]);
  rig.networking.putNetwork({
    ...{ id: SHARED_NETWORK, name: "all", projectId: "ops", isShared: false, isExternal: false, subnetIds: ["s"] },
    ...{ first: "10.2.0.10", size: 4 },
  });
  expect(await networksOf("bob:two", undefined)).toEqual([]);
  expect(await networksOf("bob:two", "auto")).toBe(400);
  rig.networking.autoNetworks.set("two", SHARED_NETWORK);
  expect(await networksOf("bob:two", "auto")).toEqual([SHARED_NETWORK]);
});

test("a call whose answer from Neutron is lost is refused, and its ports are found and deleted", async () => {
  rig.networking.fate = (method) => (method === "createPorts" ? "lost" : "answered");
  const refused = await create({ networks: [{ uuid: OWN_NETWORK }] });
  expect([refused.statusCode, refused.body]).toEqual([503, expect.stringContaining("Neutron does not answer")]);
  expect(rig.networking.all()).toHaveLength(1);
  await settleOld();
  await eventually("the end of the port", () => rig.networking.all().length === 0);
});

test("a port that Neutron changes while a server gets it is not taken for one in use", async () => {
  const own = userPort();
  let changes = 0;
  rig.networking.fate = (method) => {
    // Between the reading of the port and its change, the port's status changes.
    if (method === "updatePort" && changes++ === 0) rig.networking.putPort({ ...portIs(own.id)!, revision: 7 });
    return "answered";
  };
  const id = await boot({ networks: [{ port: own.id }] });
  expect(portIs(own.id)).toMatchObject({ deviceId: id });
  expect(changes).toBe(2);
});

test("of two calls for one port, one gets it", async () => {
  const own = userPort();
  const answers = await Promise.all([
    create({ networks: [{ port: own.id }] }),
    create({ networks: [{ port: own.id }] }),
  ]);
  expect(answers.map(({ statusCode }) => statusCode).toSorted()).toEqual([202, 409]);
  const winner = answers.find(({ statusCode }) => statusCode === 202)?.json().server.id;
  expect(portIs(own.id)?.deviceId).toBe(winner);
});

test("servers that the quota cuts off, or refuses, leave no port", async () => {
  const cut = await create({
    networks: [{ uuid: OWN_NETWORK }],
    min_count: 1,
    max_count: 4,
    return_reservation_id: true,
  });
  expect([cut.statusCode, cut.body]).toEqual([202, expect.anything()]);
  expect(rig.networking.all()).toHaveLength(3);
  const own = userPort({ networkId: SHARED_NETWORK });
  const refused = await create({ networks: [{ uuid: SHARED_NETWORK }, { port: own.id }] });
  expect([refused.statusCode, refused.body]).toEqual([403, expect.stringContaining("Quota exceeded")]);
  expect(rig.networking.all()).toHaveLength(4);
  expect(portIs(own.id)).toMatchObject({ deviceId: "" });
});

test("attaches a port, or a network, to a server on its host, and detaches them", async () => {
  await answerInterfaces(rig.cell("north").bus, "north");
  const id = await active({ networks: "none" });
  const own = userPort();
  const path = `/v2.1/servers/${id}/os-interface`;
  const attach = (fields: object) => rig.post(path, { interfaceAttachment: fields }, as("ann:one"));
  const first = await attach({ port_id: own.id, tag: "nic" });
  expect([first.statusCode, first.json().interfaceAttachment]).toMatchObject([
    200,
    { port_id: own.id, port_state: "ACTIVE", tag: "nic", mac_addr: own.macAddress },
  ]);
  expect(portIs(own.id)).toMatchObject({ deviceId: id, host: HOST });
  expect((await attach({ port_id: own.id })).statusCode).toBe(409);
  const second = await attach({ net_id: SHARED_NETWORK, fixed_ips: [{ ip_address: "10.2.0.12" }] });
  expect([second.statusCode, second.json().interfaceAttachment.fixed_ips[0].ip_address]).toEqual([200, "10.2.0.12"]);
  expect((await show(id)).addresses).toMatchObject({ own: [{}], all: [{ addr: "10.2.0.12" }] });
  for (const port of [own.id, second.json().interfaceAttachment.port_id])
    expect((await rig.delete(`${path}/${port}`, as("ann:one"))).statusCode).toBe(202);
  expect(rig.networking.all()).toMatchObject([{ id: own.id, deviceId: "", host: "" }]);
  expect((await show(id)).addresses).toEqual({});
  expect((await rig.delete(`${path}/${own.id}`, as("ann:one"))).statusCode).toBe(404);
  expect(await rig.portNotes.dueNotes(-1_000, null, 10)).toEqual([]);
});

test("an admin of another project attaches the ports and networks of the server's project, and not those of its own", async () => {
  await answerInterfaces(rig.cell("north").bus, "north");
  rig.networking.putNetwork({
    ...{ id: SHARED_NETWORK, name: "ops", projectId: "ops", isShared: false, isExternal: false, subnetIds: ["s"] },
    ...{ first: "10.2.0.10", size: 4 },
  });
  const id = await active({ networks: "none" });
  const [own, others] = [userPort(), userPort({ projectId: "ops", networkId: SHARED_NETWORK })];
  const attach = async (interfaceAttachment: object) => {
    const answer = await rig.post(`/v2.1/servers/${id}/os-interface`, { interfaceAttachment }, as("admin:ops"));
    return [answer.statusCode, Object.values<{ message?: string; net_id?: string }>(answer.json())[0]];
  };
  expect(await attach({ port_id: others.id })).toMatchObject([
    400,
    { message: expect.stringContaining("another project") },
  ]);
  expect(await attach({ port_id: own.id })).toMatchObject([200, { port_id: own.id }]);
  // Without a network, it is the only one of the server's project.
  expect(await attach({})).toMatchObject([200, { net_id: OWN_NETWORK }]);
  expect(portIs(others.id)).toMatchObject({ deviceId: "" });
  expect(portsOf(id)).toHaveLength(2);
});

test("a detached port that a client has given to another server in Neutron stays there", async () => {
  await answerInterfaces(rig.cell("north").bus, "north");
  const id = await active();
  const [port] = portsOf(id);
  const given = rig.networking.putPort({ ...port!, deviceId: randomUUID(), revision: 9 });
  expect((await rig.delete(`/v2.1/servers/${id}/os-interface/${port?.id}`, as("ann:one"))).statusCode).toBe(202);
  expect((await show(id)).addresses).toEqual({});
  expect(rig.networking.all()).toEqual([given]);
});

test("after an event of Neutron, a server shows the present addresses, and loses a port that is gone", async () => {
  const id = await active({ networks: [{ uuid: OWN_NETWORK }, { uuid: SHARED_NETWORK }] });
  const [first, second] = portsOf(id);
  const tell = (name: string, tag?: string) =>
    rig.post(
      "/v2.1/os-server-external-events",
      { events: [{ name, server_uuid: id, ...(tag && { tag }) }] },
      as("admin:ops"),
    );
  const addresses = async () =>
    Object.values<{ addr: string }[]>((await show(id)).addresses)
      .flat()
      .map(({ addr }) => addr);
  rig.networking.putPort({ ...first!, fixedAddresses: [{ address: "10.1.0.99", subnetId: "s" }] });
  expect(await addresses()).not.toContain("10.1.0.99");
  expect((await tell("network-changed")).statusCode).toBe(200);
  await eventually("the address", async () => (await addresses()).includes("10.1.0.99"));
  // An event about a port that is still there takes nothing away.
  await tell("network-vif-deleted", second?.id);
  await eventually("agreement", async () => (await rig.portNotes.dueNotes(-1_000, null, 10)).length === 0);
  expect(await addresses()).toHaveLength(2);
  await rig.networking.deletePort(second!.id, null);
  await tell("network-vif-deleted", second?.id);
  await eventually("the end of the port", async () => (await addresses()).length === 1);
  expect(await addresses()).toEqual(["10.1.0.99"]);
  await eventually("agreement", async () => (await rig.portNotes.dueNotes(-1_000, null, 10)).length === 0);
});

test("an event that comes while Neutron is silent has its effect later", async () => {
  const id = await active();
  const [port] = portsOf(id);
  rig.networking.putPort({ ...port!, fixedAddresses: [{ address: "10.1.0.99", subnetId: "s" }] });
  rig.networking.fate = () => "silent";
  const event = { name: "network-changed", server_uuid: id };
  const answer = await rig.post("/v2.1/os-server-external-events", { events: [event] }, as("admin:ops"));
  expect(answer.statusCode).toBe(200);
  rig.networking.fate = () => "answered";
  await settleOld();
  await eventually("the address", async () => JSON.stringify((await show(id)).addresses).includes("10.1.0.99"));
});

test("a port that Neutron has reported as deleted leaves the record also if the api that has heard of it ends", async () => {
  const id = await active({ networks: [{ uuid: OWN_NETWORK }, { uuid: SHARED_NETWORK }] });
  const [first, second] = portsOf(id);
  for (const { id: port } of [first!, second!]) await rig.networking.deletePort(port, null);
  // The event reached an api that ended then: only the note is left. Nobody has said anything about the second port.
  await rig.portNotes.openNotes([{ serverUuid: id, keptPorts: [], deletedPorts: [first!.id] }]);
  await settleOld();
  await eventually("agreement", async () => (await rig.portNotes.dueNotes(-1_000, null, 10)).length === 0);
  const [server] = await rig.cell("north").store.servers([id]);
  expect(server?.spec.ports.map(({ portId }) => portId)).toEqual([second?.id]);
});

test("a port for which the guest gets no interface is given back to Neutron", async () => {
  const refused = { $case: "interfacesRefused", value: "all slots are taken" } as const;
  const asked = await answerInterfaces(rig.cell("north").bus, "north", () => refused);
  const id = await active({ networks: "none" });
  const own = userPort();
  const body = { interfaceAttachment: { port_id: own.id } };
  const answer = await rig.post(`/v2.1/servers/${id}/os-interface`, body, as("ann:one"));
  expect([answer.statusCode, answer.body]).toEqual([409, expect.stringContaining("all slots are taken")]);
  // The guest is to have the MAC address that Neutron gave the port.
  expect(asked[0]?.interfaces?.interfaces).toEqual([
    { portId: own.id, slot: 1, macAddress: portIs(own.id)?.macAddress },
  ]);
  expect([portIs(own.id)?.deviceId, (await show(id)).addresses]).toEqual(["", {}]);
});

test("a port that Neutron does not take away is taken away later, and one of a refused attachment at once", async () => {
  await answerInterfaces(rig.cell("north").bus, "north");
  const id = await active();
  const [port] = portsOf(id);
  const path = `/v2.1/servers/${id}/os-interface`;
  rig.networking.hostsWithoutDriver.add(HOST);
  const refused = await rig.post(path, { interfaceAttachment: { net_id: SHARED_NETWORK } }, as("ann:one"));
  expect([refused.statusCode, refused.body]).toEqual([400, expect.stringContaining("Binding failed for port")]);
  expect(rig.networking.all()).toHaveLength(1);
  rig.networking.fate = (method) => (method === "deletePort" ? "silent" : "answered");
  expect((await rig.delete(`${path}/${port?.id}`, as("ann:one"))).statusCode).toBe(202);
  expect(portsOf(id)).toHaveLength(1);
  rig.networking.fate = () => "answered";
  await settleOld();
  await eventually("the end of the port", () => portsOf(id).length === 0);
});
