import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { cellEventsSubject } from "../../../adapters/nats/streams.ts";
import { CellEvent, EventKind } from "../../../proto/gen/berth/cell.ts";
import type { CellClient } from "../../../services/api/cells/cell-client.ts";
import type { Cells } from "../../../services/api/cells/hydrate-servers.ts";
import { endPreparedBindings } from "../../../services/api/compute/neutron-ports/end-prepared-bindings.ts";
import { NeutronPortSettler } from "../../../services/api/compute/neutron-ports/neutron-port-settler.ts";
import { hostName } from "../../contract/cell-fixtures.ts";
import { OWN_NETWORK, putContractNetworks } from "../../contract/networking.contract.ts";
import { answerInterfaces } from "../../rigs/answer-interfaces.ts";
import { eventually } from "../../rigs/eventually.ts";
import { ApiRig } from "./api-rig.ts";

const ANN = { "x-auth-token": "ann:one", "openstack-api-version": "compute 2.90" };

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ networks: "neutron", auth: "noauth2" });
  putContractNetworks(rig.networking);
  await answerInterfaces(rig.cell("north").bus, "north");
});
afterEach(() => rig.close());

async function active(networks: unknown = "none"): Promise<string> {
  const server = { name: "web", flavorRef: "1", networks };
  const { id } = (await rig.post("/v2.1/servers", { server }, ANN)).json().server;
  const task = await rig.dispatch(id, "north", [0]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  return id;
}

/** Holds the first `count` patches of servers until all of them are asked for. Then each of them is done in turn. */
function patchTogether(count: number): void {
  const { store } = rig.cell("north");
  const patch = store.patchHoldings.bind(store);
  const all = Promise.withResolvers<void>();
  let asked = 0;
  store.patchHoldings = async (...patches) => {
    asked += 1;
    if (asked === count) all.resolve();
    await all.promise;
    return patch(...patches);
  };
}

test("of two attachments of one port to one server at the same time, one succeeds, and the server keeps the port", async () => {
  const id = await active();
  const port = rig.networking.putPort({ projectId: "one", networkId: OWN_NETWORK });
  patchTogether(2);
  const body = { interfaceAttachment: { port_id: port.id } };
  const attach = () => rig.post(`/v2.1/servers/${id}/os-interface`, body, ANN);
  const answers = await Promise.all([attach(), attach()]);
  expect(answers.map(({ statusCode }) => statusCode).toSorted()).toEqual([200, 409]);
  const [server] = await rig.cell("north").store.servers([id]);
  expect(server?.spec.ports.map(({ portId }) => portId)).toEqual([port.id]);
  expect(rig.networking.all()).toMatchObject([{ id: port.id, deviceId: id, host: hostName(0) }]);
});

test("many events of one server in one call are taken together", async () => {
  const id = await active([{ uuid: OWN_NETWORK }, { uuid: OWN_NETWORK }, { uuid: OWN_NETWORK }]);
  const [first, second, third] = rig.networking.all();
  await rig.networking.deletePort(first!.id, null);
  await rig.networking.deletePort(second!.id, null);
  const asked: string[] = [];
  rig.networking.fate = (method) => {
    asked.push(method);
    return "answered";
  };
  const deleted = [first, second].map((port) => ({ name: "network-vif-deleted", server_uuid: id, tag: port?.id }));
  const events = [...deleted, { name: "network-changed", server_uuid: id }];
  const answer = await rig.post("/v2.1/os-server-external-events", { events }, { ...ANN, "x-auth-token": "admin:ops" });
  expect([answer.statusCode, answer.body]).toEqual([200, expect.anything()]);
  await eventually("agreement", async () => (await rig.portNotes.dueNotes(-1_000, null, 10)).length === 0);
  const [server] = await rig.cell("north").store.servers([id]);
  expect(server?.spec.ports.map(({ portId }) => portId)).toEqual([third?.id]);
  expect(asked.slice(0, 2)).toEqual(["ports", "floatingIps"]);
});

test("a server in ERROR gets its addresses, and loses a deleted port only when it is ACTIVE again", async () => {
  const id = await active([{ uuid: OWN_NETWORK }, { uuid: OWN_NETWORK }]);
  const { store } = rig.cell("north");
  const [first, second] = rig.networking.all();
  await store.resetStatus([{ serverUuid: id, status: "ERROR" }]);
  rig.networking.putPort({ ...first!, fixedAddresses: [{ address: "10.1.0.99", subnetId: "s" }] });
  await rig.networking.deletePort(second!.id, null);
  const events = [{ name: "network-vif-deleted", server_uuid: id, tag: second!.id }];
  await rig.post("/v2.1/os-server-external-events", { events }, { ...ANN, "x-auth-token": "admin:ops" });
  const ports = async () => (await store.servers([id]))[0]?.spec.ports ?? [];
  await eventually("the address", async () => (await ports())[0]?.addresses[0] === "10.1.0.99");
  expect((await ports()).map(({ portId }) => portId)).toEqual([first?.id, second?.id]);
  await store.resetStatus([{ serverUuid: id, status: "ACTIVE" }]);
  await eventually("the end of the port", async () => (await ports()).length === 1);
});

/** A settler of its own, by a clock of its own. `looks` has the times at which it has looked at servers. */
function timed() {
  let nowMs = 0;
  const looks: number[] = [];
  const { networking, portNotes: notes, store } = rig;
  const operations = async (ask: (cell: unknown) => Promise<unknown>) => ({
    ...{ kind: "answer", value: await ask(rig.cell("north").store) },
  });
  const cells: Cells = new Map([["north", { name: "north", operations } as unknown as CellClient]]);
  const requests: typeof store.requests = (uuids) => {
    looks.push(nowMs);
    return store.requests(uuids);
  };
  const settler = new NeutronPortSettler(
    {
      ...{ networking, floatingIps: networking.floatingIps, notes, cells, events: { portsNotSwept: () => {} } },
      store: {
        ...{ requests, accept: store.accept.bind(store), cancel: store.cancel.bind(store) },
        markDeleted: store.markDeleted.bind(store),
      },
      clock: { now: () => nowMs, monotonic: () => nowMs, setTimer: () => ({ cancel: () => {} }) },
    },
    { pollMs: 60_000 },
  );
  const settleUntil = async (ms: number) => {
    for (; nowMs <= ms; nowMs += 1_000) await settler.settle();
  };
  return { looks, settleUntil };
}

test("a server that cannot be brought up to date at present is looked at again after delays that grow, and soon once it is deleted", async () => {
  const id = await active([{ uuid: OWN_NETWORK }]);
  const [port] = rig.networking.all();
  await rig.cell("north").store.resetStatus([{ serverUuid: id, status: "ERROR" }]);
  await rig.networking.deletePort(port!.id, null);
  await rig.portNotes.openNotes([{ serverUuid: id, keptPorts: [], deletedPorts: [port!.id] }]);
  await rig.portNotes.endServers([id]);
  const { looks, settleUntil } = timed();
  await settleUntil(20_000);
  expect(looks).toEqual([0, 2_000, 6_000, 14_000]);
  await settleUntil(70_000);
  expect(looks.at(-1)).toBe(62_000);
  // Its ports do not wait until 126 s.
  await rig.store.cancel(id, "req-1");
  await rig.store.markDeleted([{ cell: "north", serverUuid: id }]);
  await settleUntil(90_000);
  expect(looks.at(-1)).toBe(90_000);
});

test("a server that is gone while a host may have a guest of it is looked at again after delays that grow, too", async () => {
  const id = await active([{ uuid: OWN_NETWORK }]);
  const { store } = rig.cell("north");
  store.guestsLeft = async (uuids) => uuids.map(() => true);
  await rig.store.cancel(id, "req-1");
  await rig.store.markDeleted([{ cell: "north", serverUuid: id }]);
  await rig.portNotes.endServers([id]);
  const { looks, settleUntil } = timed();
  await settleUntil(20_000);
  expect(looks).toEqual([0, 2_000, 6_000, 14_000]);
  expect(rig.networking.all()).toHaveLength(1);
  store.guestsLeft = async (uuids) => uuids.map(() => false);
  await settleUntil(30_000);
  expect(rig.networking.all()).toHaveLength(0);
});

test("a port that Neutron gives to a deleted server late, for a call that was given up before, is taken back", async () => {
  const own = rig.networking.putPort({ projectId: "one", networkId: OWN_NETWORK });
  const server = { name: "web", flavorRef: "1", networks: [{ uuid: OWN_NETWORK }] };
  const { id } = (await rig.post("/v2.1/servers", { server }, ANN)).json().server;
  await rig.portNotes.openNotes([{ serverUuid: id, keptPorts: [own.id] }]);
  await rig.delete(`/v2.1/servers/${id}`, ANN);
  const ofServer = () => rig.networking.all().filter(({ deviceId }) => deviceId === id);
  await eventually("the end of the ports", () => ofServer().length === 0);
  rig.networking.putPort({ ...own, deviceId: id });
  await eventually("the return of the late port", () => ofServer().length === 0);
  expect(rig.networking.all()).toMatchObject([{ id: own.id }]);
  expect(await rig.portNotes.notes([id])).toHaveLength(1);
});

test("a port that a client gives to another server in Neutron while it is being detached is not deleted", async () => {
  const id = await active([{ uuid: OWN_NETWORK }]);
  const [port] = rig.networking.all();
  const other = randomUUID();
  const deletePort = rig.networking.deletePort.bind(rig.networking);
  rig.networking.deletePort = async (...asked) => {
    rig.networking.putPort({ ...port!, deviceId: other, revision: port!.revision + 1 });
    return deletePort(...asked);
  };
  expect((await rig.delete(`/v2.1/servers/${id}/os-interface/${port?.id}`, ANN)).statusCode).toBe(202);
  expect(rig.networking.all()).toMatchObject([{ id: port?.id, deviceId: other }]);
});

test("a late event about a failure takes no port from a call that is attaching it", async () => {
  const id = await active();
  const port = rig.networking.putPort({ projectId: "one", networkId: OWN_NETWORK });
  const { store } = rig.cell("north");
  const patch = store.patchHoldings.bind(store);
  const failed = CellEvent.create({ kind: EventKind.EVENT_KIND_SERVER_ERROR, cell: "north", serverUuid: id, atMs: 1 });
  store.patchHoldings = async (...patches) => {
    const [before] = await rig.portNotes.notes([id]);
    await rig.cell("north").bus.publish(cellEventsSubject("north"), CellEvent.encode(failed).finish());
    await eventually("the note of the failure", async () => {
      return (await rig.portNotes.notes([id]))[0]?.version !== before?.version;
    });
    expect(await rig.portNotes.dueNotes(600_000, null, 10)).toEqual([]);
    return patch(...patches);
  };
  const body = { interfaceAttachment: { port_id: port.id } };
  expect((await rig.post(`/v2.1/servers/${id}/os-interface`, body, ANN)).statusCode).toBe(200);
  expect(rig.networking.all()).toMatchObject([{ id: port.id, deviceId: id, host: hostName(0) }]);
});

test("a binding that a live migration has left behind is deleted as soon as the server is at rest, and its own is kept", async () => {
  const id = await active([{ uuid: OWN_NETWORK }]);
  const [port] = rig.networking.all();
  await rig.networking.updatePort(port!.id, { host: hostName(0) }, port!.revision);
  const bindings = async () => ((await rig.networking.bindings(port!.id)) ?? []).map(({ host }) => host);
  await rig.networking.createBinding(port!.id, { host: "left", vnicType: "normal", profile: {} });
  const admin = { ...ANN, "x-auth-token": "admin:one" };
  const asked = { "os-migrateLive": { host: null, block_migration: "auto" } };
  expect((await rig.post(`/v2.1/servers/${id}/action`, asked, admin)).statusCode).toBe(202);
  expect(await rig.portNotes.dueNotes(-60_000, null, 10)).toMatchObject([{ serverUuid: id }]);
  expect(await bindings()).toEqual([hostName(0), "left"]);
  await rig.portNotes.endServers([id]);
  await eventually("the end of the binding", async () => (await bindings()).join() === hostName(0));
  await eventually(
    "the note to be settled",
    async () => (await rig.portNotes.dueNotes(-60_000, null, 10)).length === 0,
  );
});

test.each([
  { server: { host: hostName(0), taskState: "migrating" }, isDone: false, left: [hostName(0), "next"] },
  { server: { host: hostName(0), taskState: null }, isDone: true, left: [hostName(0)] },
  { server: { host: null, taskState: null }, isDone: true, left: [hostName(0), "next"] },
])("bindings of a server are ended only when it rests on a host ($server)", async ({ server, isDone, left }) => {
  const uuid = randomUUID();
  const port = rig.networking.putPort({
    ...{ projectId: "one", networkId: OWN_NETWORK, deviceId: uuid, host: hostName(0), vifType: "ovs" },
  });
  await rig.networking.createBinding(port.id, { host: "next", vnicType: "normal", profile: {} });
  expect(await endPreparedBindings(rig.networking, { uuid, ...server }, async () => true)).toBe(isDone);
  expect((await rig.networking.bindings(port.id))?.map(({ host }) => host)).toEqual(left);
});

test("a move that begins after the server was found at rest keeps the binding that it makes the active one", async () => {
  const uuid = randomUUID();
  const { id } = rig.networking.putPort({
    ...{ projectId: "one", networkId: OWN_NETWORK, deviceId: uuid, host: hostName(0), vifType: "ovs" },
  });
  await rig.networking.createBinding(id, { host: "next", vnicType: "normal", profile: {} });
  let rests = true;
  const look = rig.networking.bindings.bind(rig.networking);
  rig.networking.bindings = async (port) => {
    const found = await look(port);
    rests = false;
    await rig.networking.activateBinding(id, "next");
    return found;
  };
  const server = { uuid, host: hostName(0), taskState: null };
  expect(await endPreparedBindings(rig.networking, server, async () => rests)).toBe(false);
  expect(rig.networking.all().find((port) => port.id === id)).toMatchObject({ host: "next", vifType: "ovs" });
});
