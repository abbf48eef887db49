import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { DueNote, PortNoteStore } from "../../../core/stores/api/port-note-store.ts";
import type { CellStore } from "../../../core/stores/cell/cell-store.ts";
import type { NeutronPort } from "../../../core/stores/networking.ts";
import { NetworkingError } from "../../../core/stores/networking-error.ts";
import type { Server } from "../../../core/tasks/server.ts";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { overriding } from "../../../runtime/overriding.ts";
import type { CellClient } from "../../../services/api/cells/cell-client.ts";
import { NeutronPortSettler } from "../../../services/api/compute/neutron-ports/neutron-port-settler.ts";
import { OWN_NETWORK, putContractNetworks } from "../../contract/networking.contract.ts";
import { eventually } from "../../rigs/eventually.ts";
import { OperationByHand } from "../../rigs/operation-by-hand.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ networks: "neutron", auth: "noauth2" });
  putContractNetworks(rig.networking);
});
afterEach(() => rig.close());

const as = (token: string) => ({ "x-auth-token": token, "openstack-api-version": "compute 2.90" });
const ANN = as("ann:one");
const ADMIN = as("admin:ops");
const get = (id: string) => rig.get(`/v2.1/servers/${id}`, ANN);
const active = (networks: readonly object[] = [{ uuid: OWN_NETWORK }]) => rig.bootActive("north", 0, { networks }, ANN);
const portsOf = (id: string): readonly NeutronPort[] => rig.networking.all().filter(({ deviceId }) => deviceId === id);

/** The cell deletes the server, and the api is not told. */
async function deleted(networks?: readonly object[]): Promise<string> {
  const id = await active(networks);
  expect((await rig.delete(`/v2.1/servers/${id}`, ANN)).statusCode).toBe(204);
  const [task] = rig.deleteTasks("north");
  await rig.cell("north").store.commitDeleted([await rig.take("north", task!)]);
  return id;
}

test("whoever is told that a server is gone finds none of its ports, and those of users free", async () => {
  const own = rig.networking.putPort({ projectId: "one", networkId: OWN_NETWORK });
  const id = await deleted([{ uuid: OWN_NETWORK }, { port: own.id }]);
  expect(portsOf(id)).toHaveLength(2);
  const answers = await Promise.all([get(id), get(id)]);
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([404, 404]);
  expect(rig.networking.all()).toMatchObject([{ id: own.id, deviceId: "", host: "" }]);
});

test("a port of a user leaves its server without the binding that a live migration has left behind", async () => {
  const own = rig.networking.putPort({ projectId: "one", networkId: OWN_NETWORK });
  const id = await deleted([{ port: own.id }]);
  const { revision } = rig.networking.all()[0]!;
  await rig.networking.updatePort(own.id, { host: "host-0" }, revision);
  await rig.networking.createBinding(own.id, { host: "host-1", vnicType: "normal", profile: {} });
  expect((await get(id)).statusCode).toBe(404);
  expect(rig.networking.all()).toMatchObject([{ id: own.id, deviceId: "", host: "" }]);
  expect(await rig.networking.bindings(own.id)).toEqual([]);
});

test("a server that waits for the confirmation of its resize loses the binding that an earlier live migration has left behind", async () => {
  const id = await active();
  const [port] = portsOf(id);
  await rig.networking.updatePort(port!.id, { host: "host-0" }, port!.revision);
  await rig.networking.createBinding(port!.id, { host: "left", vnicType: "normal", profile: {} });
  const { store } = rig.cell("north");
  const servers = store.servers.bind(store);
  store.servers = async (uuids) =>
    (await servers(uuids)).map((server): Server => ({ ...server, status: "VERIFY_RESIZE" }));
  await rig.portNotes.openNotes([{ serverUuid: id, keptPorts: [] }]);
  await rig.portNotes.endServers([id]);
  const hosts = async () => ((await rig.networking.bindings(port!.id)) ?? []).map(({ host }) => host);
  await eventually("the end of the binding", async () => (await hosts()).join() === "host-0");
  // Its addresses are compared again when it is confirmed.
  expect(await rig.portNotes.dueNotes(-60_000, null, 10)).toMatchObject([{ serverUuid: id }]);
});

test("a server of which a host may still have a guest is gone, and keeps its ports", async () => {
  const id = await active();
  await rig.delete(`/v2.1/servers/${id}`, ANN);
  const [task] = rig.deleteTasks("north");
  await rig.cell("north").store.commitDeleted([{ ...(await rig.take("north", task!)), left: ["host-0"] }]);
  expect((await get(id)).statusCode).toBe(404);
  expect(portsOf(id)).toHaveLength(1);
});

test("the answer that a server is gone does not fail with Neutron, and its ports are released when Neutron answers", async () => {
  const id = await deleted();
  rig.networking.fate = () => "silent";
  expect((await get(id)).statusCode).toBe(404);
  expect(portsOf(id)).toHaveLength(1);
  rig.networking.fate = () => "answered";
  expect((await get(id)).statusCode).toBe(404);
  await rig.portNotes.endServers([id]);
  await eventually("the end of the ports", () => portsOf(id).length === 0);
});

/** A settler that knows one cell and does nothing by itself. */
function settlerWith(clock: ManualClock, notes: PortNoteStore = rig.portNotes): NeutronPortSettler {
  const operations = async <Value>(read: (store: CellStore) => Promise<Value>) => ({
    ...{ kind: "answer", value: await read(rig.cell("north").store) },
  });
  const deps = {
    ...{ networking: rig.networking, floatingIps: rig.networking.floatingIps, notes },
    ...{ store: rig.store, clock, events: { portsNotSwept: () => {} } },
    cells: new Map([["north", { name: "north", operations } as unknown as CellClient]]),
  };
  return new NeutronPortSettler(deps, { pollMs: 60_000 });
}

test("the answer that a server is gone waits some seconds for a Neutron that hangs, not again in the next seconds, and not at all for one deleted long ago", async () => {
  const id = await deleted();
  const [server] = await rig.cell("north").store.servers([id]);
  const clock = new ManualClock(server!.deletedAtMs ?? 0);
  let asked = 0;
  rig.networking.ports = () => {
    asked += 1;
    return new Promise(() => {});
  };
  const settler = settlerWith(clock);
  let isOver = false;
  const ending = settler.endNow(server!).then(() => {
    isOver = true;
  });
  await eventually("the question", () => asked === 1);
  expect(isOver).toBe(false);
  clock.advance(5_000);
  await ending;
  // Neither for this server nor for another one that ends now.
  await settler.endNow(server!);
  await settler.endNow({ ...server!, uuid: randomUUID() });
  clock.advance(60_000);
  await settler.endNow(server!);
  expect(asked).toBe(1);
});

test("whoever asks for a deleted server asks Neutron again only some seconds after Neutron was silent", async () => {
  const id = await deleted();
  const [server] = await rig.cell("north").store.servers([id]);
  const clock = new ManualClock(server!.deletedAtMs ?? 0);
  const settler = settlerWith(clock);
  const asked: string[] = [];
  rig.networking.fate = (method) => {
    asked.push(method);
    return "silent";
  };
  await settler.endNow(server!);
  await settler.endNow(server!);
  expect([asked, portsOf(id).length]).toEqual([["ports"], 1]);
  rig.networking.fate = () => "answered";
  clock.advance(10_000);
  await settler.endNow(server!);
  expect(portsOf(id)).toEqual([]);
});

/** A deleted server, whose port Neutron deletes when `end` is called, and a settler whose rounds look at that server. */
async function slowlyDeleted() {
  const id = await deleted();
  const [server] = await rig.cell("north").store.servers([id]);
  const notes = overriding(rig.portNotes, { dueNotes: () => rig.portNotes.notes([id]) });
  const settler = settlerWith(new ManualClock(server!.deletedAtMs ?? 0), notes);
  const deletePort = rig.networking.deletePort.bind(rig.networking);
  const mayDelete = Promise.withResolvers<void>();
  let begun = 0;
  rig.networking.deletePort = async (...words) => {
    begun += 1;
    if (begun > 1) throw new NetworkingError("bad-answer", "Neutron answers 500");
    await mayDelete.promise;
    return deletePort(...words);
  };
  return {
    settler,
    server: server!,
    ports: () => portsOf(id).length,
    deletions: () => begun,
    isDeleting: () => eventually("the deletion", () => begun === 1),
    async end() {
      // Many more questions than those after which a second call would delete the port, too.
      for (let asked = 0; asked < 50; asked += 1) await rig.store.requests([id]);
      mayDelete.resolve();
    },
  };
}

test("the answer that a server is gone waits for a round that is deleting its ports, and deletes none a second time", async () => {
  const { settler, server, ports, deletions, isDeleting, end } = await slowlyDeleted();
  const round = settler.settle();
  await isDeleting();
  const found = settler.endNow(server).then(ports);
  await end();
  await round;
  expect([deletions(), await found]).toEqual([1, 0]);
});

test("a round leaves the ports of a server to the answer that the server is gone, which is deleting them, and deletes none a second time", async () => {
  const { settler, server, ports, deletions, isDeleting, end } = await slowlyDeleted();
  const ending = settler.endNow(server);
  await isDeleting();
  const round = settler.settle();
  await end();
  await Promise.all([round, ending]);
  expect([deletions(), ports()]).toEqual([1, 0]);
});

test("few servers at a time end for callers who ask for them, however many are asked for", async () => {
  const clock = new ManualClock();
  const answer = Promise.withResolvers<readonly DueNote[]>();
  let begun = 0;
  const notes = overriding(rig.portNotes, {
    notes: () => {
      begun += 1;
      return answer.promise;
    },
  });
  const settler = settlerWith(clock, notes);
  const gone = () => ({ uuid: randomUUID(), deletedAtMs: clock.now() });
  const waiting = Array.from({ length: 16 }, () => settler.endNow(gone()));
  await settler.endNow(gone());
  expect(begun).toBe(16);
  answer.resolve([]);
  await Promise.all(waiting);
  await settler.endNow(gone());
  expect(begun).toBe(17);
});

test("a server that is shelved and offloaded shows the addresses that its ports get then", async () => {
  const id = await active();
  const [port] = portsOf(id);
  const { store } = rig.cell("north");
  for (const [action, stages] of [
    ["shelve", ["succeed"]],
    ["shelveOffload", ["offloading", "succeed"]],
  ] as const) {
    const answer = await rig.post(`/v2.1/servers/${id}/action`, { [action]: null }, ADMIN);
    expect([answer.statusCode, answer.body]).toEqual([202, ""]);
    const open = store.tasks().find(({ kind, outcome }) => kind === "operate" && outcome === null);
    const byHand = new OperationByHand(store, open?.id ?? "");
    for (const to of stages) await byHand.goOn(to);
  }
  rig.networking.putPort({ ...port!, fixedAddresses: [{ address: "10.1.0.99", subnetId: "s" }] });
  const events = [{ name: "network-changed", server_uuid: id }];
  await rig.post("/v2.1/os-server-external-events", { events }, ADMIN);
  await eventually("agreement", async () => (await rig.portNotes.dueNotes(-1_000, null, 10)).length === 0);
  const { server } = (await rig.get(`/v2.1/servers/${id}`, ANN)).json();
  expect(server).toMatchObject({ status: "SHELVED_OFFLOADED", addresses: { own: [{ addr: "10.1.0.99" }] } });
});

test("an unknown server is unknown at once", async () => {
  rig.networking.ports = () => new Promise(() => {});
  expect((await get(randomUUID())).statusCode).toBe(404);
});
