import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { OWN_NAME } from "../../../core/stores/networking.ts";
import { OWN_NETWORK, putContractNetworks, putExternalNetwork } from "../../contract/networking.contract.ts";
import { eventually } from "../../rigs/eventually.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ networks: "neutron", auth: "noauth2" });
  putContractNetworks(rig.networking);
  putExternalNetwork(rig.networking, 2);
});
afterEach(() => rig.close());

const as = (minor: number, token = "ann:one") => ({
  "x-auth-token": token,
  "openstack-api-version": `compute 2.${minor}`,
});
const networks = [{ uuid: OWN_NETWORK }];
async function active(): Promise<string> {
  const answer = await rig.post("/v2.1/servers", { server: { name: "web", flavorRef: "1", networks } }, as(90));
  const { id } = answer.json().server;
  const task = await rig.dispatch(id, "north", [rig.networking.all().length - 1]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  return id;
}
const allocate = async (token?: string) =>
  (await rig.post("/v2.1/os-floating-ips", { pool: "public" }, as(35, token))).json().floating_ip;
const act = async (id: string, body: object, minor = 43, token?: string) => {
  const answer = await rig.post(`/v2.1/servers/${id}/action`, body, as(minor, token));
  const [fault] = answer.body === "" ? [] : Object.values<{ message: string }>(answer.json());
  return [answer.statusCode, fault?.message ?? ""];
};
/** The addresses that a server shows, as kind and address. */
const shown = async (id: string) => {
  const { addresses } = (await rig.get(`/v2.1/servers/${id}`, as(90))).json().server;
  return Object.values<{ addr: string; "OS-EXT-IPS:type": string }[]>(addresses)
    .flat()
    .map((one) => `${one["OS-EXT-IPS:type"]} ${one.addr}`);
};
const fixedOf = (id: string) =>
  rig.networking.all().find(({ deviceId }) => deviceId === id)!.fixedAddresses[0]!.address;

test("a floating IP is allocated from a pool, leads to a server that shows it, and is given back", async () => {
  const pools = await rig.get("/v2.1/os-floating-ip-pools", as(35));
  expect(pools.json()).toEqual({ floating_ip_pools: [{ name: "public" }] });
  const made = await allocate();
  expect(made).toEqual({ id: made.id, ip: "203.0.113.10", fixed_ip: null, instance_id: null, pool: "public" });
  const id = await active();
  expect(await act(id, { addFloatingIp: { address: made.ip } })).toEqual([202, ""]);
  const led = { ...made, fixed_ip: fixedOf(id), instance_id: id };
  expect((await rig.get(`/v2.1/os-floating-ips/${made.id}`, as(35))).json()).toEqual({ floating_ip: led });
  expect((await rig.get("/v2.1/os-floating-ips", as(35))).json()).toEqual({ floating_ips: [led] });
  expect(await shown(id)).toEqual([`fixed ${fixedOf(id)}`, `floating ${made.ip}`]);
  const ips = (await rig.get(`/v2.1/servers/${id}/ips`, as(90))).json().addresses;
  expect(ips).toEqual({
    own: [
      { version: 4, addr: fixedOf(id) },
      { version: 4, addr: made.ip },
    ],
  });
  expect(await act(id, { removeFloatingIp: { address: made.ip } })).toEqual([202, ""]);
  expect(await shown(id)).toEqual([`fixed ${fixedOf(id)}`]);
  expect((await rig.delete(`/v2.1/os-floating-ips/${made.id}`, as(35))).statusCode).toBe(202);
  expect((await rig.get("/v2.1/os-floating-ips", as(35))).json()).toEqual({ floating_ips: [] });
  expect(await rig.portNotes.dueNotes(-1_000, null, 10)).toEqual([]);
});

test("a floating IP that another server gets leaves the first one, also in what the servers show", async () => {
  const [first, second, { ip: address }] = [await active(), await active(), await allocate()];
  await act(first, { addFloatingIp: { address } });
  expect(await act(second, { addFloatingIp: { address, fixed_address: fixedOf(second) } })).toEqual([202, ""]);
  expect(await shown(first)).toEqual([`fixed ${fixedOf(first)}`]);
  expect(await shown(second)).toEqual([`fixed ${fixedOf(second)}`, `floating ${address}`]);
  const why = `Floating IP ${address} is not associated with instance ${first}.`;
  expect(await act(first, { removeFloatingIp: { address } })).toEqual([409, why]);
  expect(await shown(second)).toHaveLength(2);
});

test("a floating IP that another server gets after it was read is not taken away from that server", async () => {
  const [first, second, { ip: address }] = [await active(), await active(), await allocate()];
  await act(first, { addFloatingIp: { address } });
  const { floatingIps } = rig.networking;
  const associate = floatingIps.associate.bind(floatingIps);
  floatingIps.associate = async (...asked) => {
    floatingIps.associate = associate;
    expect(await act(second, { addFloatingIp: { address } })).toEqual([202, ""]);
    return associate(...asked);
  };
  const why = `Floating IP ${address} has just been changed by another call; try again.`;
  expect(await act(first, { removeFloatingIp: { address } })).toEqual([409, why]);
  expect(await shown(second)).toEqual([`fixed ${fixedOf(second)}`, `floating ${address}`]);
});

test("a floating IP that is given back while it leads to a server leaves the server", async () => {
  const [id, made] = [await active(), await allocate()];
  await act(id, { addFloatingIp: { address: made.ip } });
  await rig.delete(`/v2.1/os-floating-ips/${made.id}`, as(35));
  expect(await shown(id)).toEqual([`fixed ${fixedOf(id)}`]);
});

test("a change that was made in Neutron itself shows later if Neutron is silent after its event", async () => {
  const [id, { ip: address }] = [await active(), await allocate()];
  await act(id, { addFloatingIp: { address } });
  const [floatingIp] = await rig.networking.floatingIps.floatingIps({ address }, OWN_NAME);
  await rig.networking.floatingIps.associate(floatingIp!, null, OWN_NAME);
  let silences = 0;
  rig.networking.fate = () => (silences++ < 3 ? "silent" : "answered");
  const event = { name: "network-changed", server_uuid: id };
  const told = await rig.post("/v2.1/os-server-external-events", { events: [event] }, as(90, "admin:ops"));
  expect(told.statusCode).toBe(200);
  await eventually("the end of the floating IP", async () => (await shown(id)).length === 1);
  expect(silences).toBeGreaterThan(3);
  await eventually("agreement", async () => (await rig.portNotes.dueNotes(-1_000, null, 10)).length === 0);
});

test("an event is answered without waiting for Neutron", async () => {
  const id = await active();
  let answerLate = (): void => {};
  const asked = rig.networking.ports.bind(rig.networking);
  const late = new Promise<void>((resolve) => {
    answerLate = resolve;
  });
  rig.networking.ports = (...of) => late.then(() => asked(...of));
  const event = { name: "network-changed", server_uuid: id };
  const told = await rig.post("/v2.1/os-server-external-events", { events: [event, event] }, as(90, "admin:ops"));
  expect(told.statusCode).toBe(200);
  expect(await rig.portNotes.dueNotes(-1_000, null, 10)).toHaveLength(1);
  answerLate();
  await eventually("agreement", async () => (await rig.portNotes.dueNotes(-1_000, null, 10)).length === 0);
});

test.each([
  ["an unknown address", { address: "198.51.100.1" }, [404, "floating IP not found"]],
  [
    "another server's fixed address",
    { fixed_address: "10.1.0.99" },
    [400, "Specified fixed address not assigned to instance"],
  ],
  ["no address", { address: "x" }, [400, expect.stringContaining("x is not an IPv4 or IPv6 address")]],
  ["another field", { pool: "public" }, [400, expect.stringContaining("'pool' was unexpected")]],
] as const)("addFloatingIp refuses %s", async (_what, fields, refusal) => {
  const [id, { ip: address }] = [await active(), await allocate()];
  expect(await act(id, { addFloatingIp: { address, ...fields } })).toEqual(refusal);
  expect(await shown(id)).toHaveLength(1);
});

test("addFloatingIp passes on what Neutron refuses, and refuses servers without addresses", async () => {
  const [id, first, second] = [await active(), await allocate(), await allocate()];
  await act(id, { addFloatingIp: { address: first.ip } });
  expect(await act(id, { addFloatingIp: { address: second.ip } })).toEqual([
    400,
    expect.stringContaining("already has a floating IP"),
  ]);
  rig.networking.floatingIps.unreachable.add(OWN_NETWORK);
  await act(id, { removeFloatingIp: { address: first.ip } });
  const why = `Unable to associate floating IP ${first.ip} to fixed IP ${fixedOf(id)} for instance ${id}. Error: External network is not reachable from subnet.`;
  expect(await act(id, { addFloatingIp: { address: first.ip } })).toEqual([400, why]);
  const bare = await rig.post("/v2.1/servers", { server: { name: "b", flavorRef: "1", networks: "none" } }, as(90));
  const address = second.ip;
  const refused = await act(bare.json().server.id, { addFloatingIp: { address } });
  expect(refused).toEqual([400, "Instance network is not ready yet"]);
});

test("floating IPs of other projects are not seen, led elsewhere or given back", async () => {
  const [id, others] = [await active(), await allocate("bob:two")];
  expect((await rig.get(`/v2.1/os-floating-ips/${others.id}`, as(35))).statusCode).toBe(404);
  expect((await rig.delete(`/v2.1/os-floating-ips/${others.id}`, as(35))).statusCode).toBe(404);
  expect((await rig.get("/v2.1/os-floating-ips", as(35))).json()).toEqual({ floating_ips: [] });
  expect(await act(id, { addFloatingIp: { address: others.ip } })).toEqual([404, "floating IP not found"]);
  expect((await act(id, { addFloatingIp: { address: others.ip } }, 43, "bob:two"))[0]).toBe(404);
});

test("a pool that is unknown, empty or over quota gives no floating IP, and a body without a pool asks for `nova`", async () => {
  const ask = async (body?: object) => {
    const answer = await rig.post("/v2.1/os-floating-ips", body, as(35));
    return [answer.statusCode, Object.values<{ message: string }>(answer.json())[0]?.message];
  };
  expect(await ask({ pool: "none" })).toEqual([404, "Floating IP pool not found."]);
  expect(await ask()).toEqual([404, "Floating IP pool not found."]);
  rig.networking.floatingIps.floatingIpsMax = 1;
  await allocate();
  expect(await ask({ pool: "public" })).toEqual([403, "IP allocation over quota in pool public."]);
  rig.networking.floatingIps.floatingIpsMax = 9;
  await allocate();
  expect(await ask({ pool: "public" })).toEqual([404, "No more floating IPs in pool public."]);
});

test("a server gets a second fixed address on its network, and loses it again", async () => {
  const id = await active();
  const first = fixedOf(id);
  expect(await act(id, { addFixedIp: { networkId: OWN_NETWORK } })).toEqual([202, ""]);
  const [, second = ""] = await shown(id);
  expect(await shown(id)).toEqual([`fixed ${first}`, second]);
  const address = second.replace("fixed ", "");
  expect(await act(id, { removeFixedIp: { address } })).toEqual([202, ""]);
  expect(await shown(id)).toEqual([`fixed ${first}`]);
  const gone = `Instance ${id} does not have fixed IP '${address}'.`;
  expect(await act(id, { removeFixedIp: { address } })).toEqual([400, gone]);
  const missing = `Network could not be found for instance ${id}.`;
  expect(await act(id, { addFixedIp: { networkId: randomUUID() } })).toEqual([404, missing]);
  for (let used = 1; used < 4; used += 1) await act(id, { addFixedIp: { networkId: OWN_NETWORK } });
  const full = await act(id, { addFixedIp: { networkId: OWN_NETWORK } });
  expect(full).toEqual([400, "No more IP addresses available on network."]);
  expect(await shown(id)).toHaveLength(4);
});

test("two calls that change a port's addresses at once both have their effect", async () => {
  const id = await active();
  const add = () => act(id, { addFixedIp: { networkId: OWN_NETWORK } });
  expect(await Promise.all([add(), add()])).toEqual([
    [202, ""],
    [202, ""],
  ]);
  await eventually("three addresses", async () => (await shown(id)).length === 3);
});

test("Berth's own network has no floating IPs, and one fixed address for each port", async () => {
  const own = await ApiRig.start({ networks: "simple", auth: "noauth2" });
  try {
    const server = { name: "web", flavorRef: "1" };
    const { id } = (await own.post("/v2.1/servers", { server }, as(1))).json().server;
    expect((await own.get("/v2.1/os-floating-ips", as(35))).json()).toEqual({ floating_ips: [] });
    expect((await own.get("/v2.1/os-floating-ip-pools", as(35))).json()).toEqual({ floating_ip_pools: [] });
    const refusal = async (body: object) => {
      const answer = await own.post(`/v2.1/servers/${id}/action`, body, as(43));
      return [answer.statusCode, Object.values<{ message: string }>(answer.json())[0]?.message];
    };
    expect(await refusal({ addFloatingIp: { address: "203.0.113.10" } })).toEqual([404, "floating IP not found"]);
    expect(await refusal({ removeFloatingIp: { address: "203.0.113.10" } })).toEqual([
      404,
      "Floating IP not found for address 203.0.113.10.",
    ]);
    expect(await refusal({ addFixedIp: { networkId: "x" } })).toEqual([400, expect.stringContaining("one address")]);
  } finally {
    await own.close();
  }
});
