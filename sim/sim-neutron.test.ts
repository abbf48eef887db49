import { expect, test } from "vitest";
import { OWN_NAME } from "../core/stores/networking.ts";
import type { Server } from "../core/tasks/server.ts";
import { SIM_NETWORK, SimNeutron } from "./sim-neutron.ts";
import { World } from "./world.ts";

const SERVER = "00000000-0000-4000-8000-000000000001";
const FAULTLESS = {
  ...{ failedShare: 0, lostShare: 0, slowShare: 0, lateShare: 0, changedShare: 0 },
  ...{ plugMsMax: 1_000, unpluggedShare: 0, failedAheadShare: 0, eventLostShare: 0, eventTwiceShare: 0 },
};
const NORMAL = { vnicType: "normal", profile: {} };

/** A Neutron with a port of a server on host-1, as a process sees it, and what is true of that server. */
async function connected(habits = FAULTLESS) {
  const world = new World(1, { wholeHistory: false });
  const truth: { server: Server | null; homes: string[] } = { server: null, homes: ["host-1"] };
  const neutron = new SimNeutron(world, habits, { look: () => truth.server, homesOf: () => truth.homes });
  const { networking } = neutron.reachedBy(world.process("conductor"));
  const port = neutron.networking.putPort({ projectId: "sim", networkId: SIM_NETWORK, deviceId: SERVER });
  const wait = async <Value>(call: Promise<Value>): Promise<Value> => {
    call.catch(() => {});
    await world.run(world.clock.monotonic() + 120_000, () => false);
    return call;
  };
  const [spec, named] = [{ ports: [{ portId: port.id }] }, { uuid: SERVER, host: "host-1", taskState: null }];
  truth.server = { ...named, status: "ACTIVE", spec } as unknown as Server;
  const bind = async (host: string) => {
    const [{ revision = 0 } = {}] = await neutron.networking.ports({ id: port.id }, OWN_NAME);
    await wait(networking.updatePort(port.id, { host }, revision));
  };
  return { world, neutron, networking, truth, wait, bind, portId: port.id };
}

test("a port that is bound becomes active, which Neutron reports, and a server whose ports are on its host breaks no law", async () => {
  const { world, neutron, bind, portId } = await connected();
  const events: string[] = [];
  neutron.onEvent = ({ name, tag }) => events.push(`${name} ${tag}`);
  expect(neutron.wrongAtRest([SERVER])).toEqual([expect.stringContaining("is bound to no host")]);
  await bind("host-1");
  expect(await neutron.networking.ports({ id: portId }, OWN_NAME)).toMatchObject([{ status: "ACTIVE" }]);
  expect(events.toSorted()).toEqual([`network-changed ${portId}`, `network-vif-plugged ${portId}`]);
  expect([neutron.wrongAtRest([SERVER]), await neutron.leftElsewhere(), world.findings]).toEqual([[], [], []]);
});

test("a port that is bound to a host that its server has left breaks a law, and so does a binding that a move has left", async () => {
  const { neutron, networking, truth, wait, bind, portId } = await connected();
  await bind("host-1");
  await wait(networking.createBinding(portId, { host: "host-2", ...NORMAL }));
  expect(await neutron.leftElsewhere()).toEqual([expect.stringContaining("keeps a binding to host-2")]);
  truth.server = { ...truth.server!, host: "host-2" };
  expect(neutron.wrongAtRest([SERVER])).toEqual([expect.stringContaining("is bound to host-1")]);
  truth.server = { ...truth.server, spec: { ports: [] } } as unknown as Server;
  expect(await neutron.leftElsewhere()).toEqual([expect.stringContaining("the server is on host-2")]);
});

test.each([
  [0, "completed"],
  [1, "failed"],
])(
  "at the destination of a live migration only the event says how a port is connected (failed: %d)",
  async (failedAheadShare, status) => {
    const { neutron, networking, wait, bind, portId } = await connected({ ...FAULTLESS, failedAheadShare });
    await bind("host-1");
    const events: unknown[] = [];
    neutron.onEvent = (event) => events.push(event);
    await wait(networking.createBinding(portId, { host: "host-2", ...NORMAL }));
    expect(events).toEqual([]);
    const [{ revision = 0 } = {}] = await neutron.networking.ports({ id: portId }, OWN_NAME);
    await wait(networking.updatePort(portId, { profile: { migrating_to: "host-2" } }, revision));
    // The first one is about the source, where Neutron binds the port again.
    const plugged = { name: "network-vif-plugged", server_uuid: SERVER, tag: portId };
    expect(events).toHaveLength(2);
    expect(events).toEqual(expect.arrayContaining(["completed", status].map((one) => ({ ...plugged, status: one }))));
    expect(await neutron.networking.ports({ id: portId }, OWN_NAME)).toMatchObject([
      { host: "host-1", status: "DOWN" },
    ]);
  },
);

test("a port whose profile changes is reported as connected, although no agent has connected it at the destination of a move", async () => {
  const habits = { ...FAULTLESS };
  const { neutron, networking, wait, bind, portId } = await connected(habits);
  await bind("host-1");
  habits.unpluggedShare = 1;
  await wait(networking.createBinding(portId, { host: "host-2", ...NORMAL }));
  const events: unknown[] = [];
  neutron.onEvent = (event) => events.push(event);
  const write = async (profile: object) => {
    const [{ revision = 0 } = {}] = await neutron.networking.ports({ id: portId }, OWN_NAME);
    await wait(networking.updatePort(portId, { profile: { ...profile } }, revision));
  };
  await write({ migrating_to: "host-2" });
  const plugged = { name: "network-vif-plugged", server_uuid: SERVER, tag: portId, status: "completed" };
  expect(events).toEqual([plugged]);
  await write({ migrating_to: "host-2" });
  expect(events).toEqual([plugged]);
});

test("a port that is deleted while its server runs breaks a law, and one that is left after its server does", async () => {
  const { world, neutron, networking, truth, wait, portId } = await connected();
  expect(neutron.left()).toEqual([expect.stringContaining(portId)]);
  await wait(networking.deletePort(portId, null));
  expect(world.findings).toMatchObject([{ law: 6, what: expect.stringContaining("while its server") }]);
  expect(neutron.wrongAtRest([SERVER])).toEqual([expect.stringContaining("does not exist")]);
  truth.server = null;
  expect([neutron.wrongAtRest([SERVER]), neutron.left()]).toEqual([[], []]);
});

test.each([
  ["failedShare", ""],
  ["lostShare", "host-1"],
  ["lateShare", "host-1"],
])("with %s, a call is not answered, and the port is bound to the host '%s'", async (share, host) => {
  const { neutron, networking, wait, portId } = await connected({ ...FAULTLESS, [share]: 1 });
  const call = wait(networking.updatePort(portId, { host: "host-1" }, 1));
  await expect(call).rejects.toMatchObject({ code: "unreachable" });
  expect(await neutron.networking.ports({ id: portId }, OWN_NAME)).toMatchObject([{ host }]);
});

test("a port that somebody else changes is not written in its earlier revision until Neutron is calm", async () => {
  const { neutron, networking, wait, portId } = await connected({ ...FAULTLESS, changedShare: 1 });
  expect(await wait(networking.updatePort(portId, { host: "host-1" }, 1))).toEqual({ kind: "changed" });
  neutron.calm();
  expect(await wait(networking.updatePort(portId, { host: "host-1" }, 2))).toMatchObject({ kind: "updated" });
});
