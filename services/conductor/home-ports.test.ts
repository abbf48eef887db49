import { randomUUID } from "node:crypto";
import { pino } from "pino";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { MemoryCellStore } from "../../adapters/memory/cell/memory-cell-store.ts";
import { MemoryLedger } from "../../adapters/memory/cell/memory-ledger.ts";
import { MemoryNetworking } from "../../adapters/memory/memory-networking.ts";
import type { Home } from "../../core/tasks/home.ts";
import type { Server } from "../../core/tasks/server.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { overriding } from "../../runtime/overriding.ts";
import { conductorId, serverId, serverSpec } from "../../test/contract/cell-fixtures.ts";
import { OWN_NETWORK, putContractNetworks } from "../../test/contract/networking.contract.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { ConductorEvents } from "./events.ts";
import { HomePorts } from "./home-ports.ts";
import { NeighbourNeeds } from "./neighbour-needs.ts";
import { CONDUCTOR_DEFAULTS } from "./settings.ts";
import { StepCommitter } from "./step-committer.ts";

const GUEST = { host: "h", serverUuid: serverId(1), attemptId: "t/0" };

/** The server's port is bound to another host. `homes` are the server's rows as they are read one after the other. */
function setUp(...homes: readonly Partial<Home>[]) {
  return setUpWith([], ...homes);
}

/** The port has these request groups, which the claim of the server's place serves by the provider `nic`. */
function setUpWith(groups: readonly string[], ...homes: readonly Partial<Home>[]) {
  const clock = new ManualClock();
  const networking = new MemoryNetworking({ newId: randomUUID });
  putContractNetworks(networking);
  const { id, macAddress } = networking.putPort({
    ...{ projectId: "one", networkId: OWN_NETWORK, deviceId: serverId(1), host: "other", vifType: "ovs" },
  });
  const named = { portId: id, networkId: OWN_NETWORK, tag: "", networkName: "own", slot: 0, macAddress };
  const request = { portId: id, resources: { NET_PACKET_RATE_EGR_KILOPACKET_PER_SEC: 1 }, requiredTraits: [] };
  const portRequests = groups.map((suffix) => ({ ...request, suffix, provider: "", groupId: "" }));
  const spec = { ...serverSpec(1), portRequests, ports: [{ ...named, addresses: [], floatingAddresses: [] }] };
  const rows = homes.values();
  let row: Home = {
    ...{ serverUuid: serverId(1), status: "ACTIVE", host: "h", attemptId: "t/0", revision: 3, busy: false, move: null },
  };
  const store = overriding(new MemoryCellStore({ clock, ledger: new MemoryLedger() }), {
    homes: async () => {
      row = { ...row, ...rows.next().value };
      return [row];
    },
    claimed: async () => [{ items: [], mappings: Object.fromEntries(groups.map((suffix) => [suffix, "nic"])) }],
    servers: async () => [{ uuid: serverId(1), spec } as unknown as Server],
  });
  const logger = pino({ level: "silent" });
  const events = new ConductorEvents({ logger, registry: new Registry(), clock, taskCount: () => 0 });
  const stop = new AbortController().signal;
  const commits = new StepCommitter({ store, conductorId: conductorId(1), clock, events, stop });
  const needs = new NeighbourNeeds({ networking, store, clock }, CONDUCTOR_DEFAULTS);
  const ports = new HomePorts({ networking, needs, store, commits, clock, events });
  const asked: string[] = [];
  networking.fate = (method) => {
    asked.push(method);
    return "answered";
  };
  const hosts = () => networking.all().map(({ host }) => host);
  /** Looks at the server. Another server waits meanwhile, so the timer for it says that the look has ended. */
  const look = async () => {
    ports.look("h", [serverId(1)]);
    clock.advance(0);
    ports.look("h", [randomUUID()]);
    await eventually("the end of the look", () => clock.pending === 1);
  };
  return { clock, networking, ports, asked, hosts, look, portId: id, macAddress };
}

test("a comparison that starts a guest binds its ports, and tells how they are connected", async () => {
  const { ports, hosts, portId, macAddress } = setUp();
  const vif = { type: "ovs", details: '{"bridge_name":"br-h"}', vnicType: "normal", profile: "{}" };
  expect(await ports.bindHome(GUEST)).toEqual({ interfaces: [{ portId, macAddress, slot: 1, vif }] });
  expect(hosts()).toEqual(["h"]);
});

test("the claims of all servers whose ports may be wrong are asked for at once", async () => {
  const asked: (readonly string[])[] = [];
  const store = {
    holdsTask: async () => true,
    claimed: async (ids: readonly string[]) => {
      asked.push(ids);
      return ids.map((id) => ({ items: [], mappings: { _PORT0: `nic of ${id}` } }));
    },
  };
  const networking = new MemoryNetworking({ newId: randomUUID });
  const needs = new NeighbourNeeds({ networking, store, clock: new ManualClock() } as never, CONDUCTOR_DEFAULTS);
  const request = { portId: "p", resources: { NET_BW_EGR_KILOBIT_PER_SEC: 1 }, requiredTraits: [] };
  const wanting = { portRequests: [{ ...request, suffix: "_PORT0", provider: "", groupId: "g" }] };
  const places = ["a/0", "b/0", "a/0"].map((attemptId) => ({ server: wanting, attemptId }));
  const found = await needs.allocationsOf([{ server: { portRequests: [] }, attemptId: "c/0" }, ...places]);
  expect(asked).toEqual([["a/0", "b/0"]]);
  expect(found.map((one) => one.get("p") ?? null)).toEqual([
    null,
    { g: "nic of a/0" },
    { g: "nic of b/0" },
    { g: "nic of a/0" },
  ]);
});

test("a comparison changes nothing of ports that are bound to the host", async () => {
  const { ports, networking, asked } = setUp();
  networking.putPort({ ...networking.all()[0]!, host: "h" });
  expect(await ports.bindHome(GUEST)).toMatchObject({ interfaces: [{ vif: { type: "ovs" } }] });
  expect(asked).toEqual(["ports"]);
});

test("a guest is started without its ports when Neutron hangs for longer than some seconds", async () => {
  const { ports, networking, clock } = setUp();
  networking.ports = () => new Promise(() => {});
  const binding = ports.bindHome(GUEST);
  await eventually("the deadline", () => clock.pending > 0);
  clock.advance(5_000);
  expect(await binding).toMatchObject({ interfaces: [{ vif: undefined }] });
});

test.each<Partial<Home>>([
  { busy: true },
  { host: "other" },
  { status: "BUILD" },
  { status: "DELETED" },
  { status: "SHELVED_OFFLOADED" },
])("the ports of a server that is not at rest on the host stay as they are: %o", async (home) => {
  const { look, asked, hosts } = setUp(home);
  await look();
  expect([asked, hosts()]).toEqual([["ports"], ["other"]]);
});

test.each([true, false])(
  "the ports of a server that waits for its confirmation are bound to the host to which it has moved (it runs: %s)",
  async (runs) => {
    const source = { host: "other", attemptId: "t/0" };
    const move: Home["move"] = { uuid: "m", kind: "resize", source, dest: { host: "h", attemptId: "u/0" }, runs };
    const { look, hosts } = setUp({ status: "VERIFY_RESIZE", attemptId: "u/0", move });
    await look();
    expect(hosts()).toEqual(["h"]);
  },
);

test.each([
  [["_PORT0"], {}, { allocation: "nic" }],
  [["_PORT0"], { allocation: "nic of another host", other: 1 }, { allocation: "nic", other: 1 }],
  [[], { migrating_to: "other", other: 1 }, { other: 1 }],
])("a port of %j that is bound to its server's host with the profile %j gets %j", async (groups, profile, told) => {
  const { look, networking, ports } = setUpWith(groups);
  const [port] = networking.all();
  const shown = groups.map((id) => ({ id, resources: {}, required: [] }));
  networking.putPort({ ...port!, host: "h", groups: shown, profile });
  await look();
  expect(networking.all()).toMatchObject([{ host: "h" }]);
  expect(networking.all()[0]?.profile).toEqual(told);
  const { revision } = networking.all()[0]!;
  await ports.bindHome(GUEST);
  expect(networking.all()[0]?.revision).toBe(revision);
});

test("a move that begins while the row is being read is left alone", async () => {
  const { look, asked, hosts } = setUp({}, { busy: true });
  await look();
  expect([asked.includes("updatePort"), hosts()]).toEqual([false, ["other"]]);
});

test("a move that begins after the row was read keeps the binding that it makes", async () => {
  const { look, networking, hosts } = setUp({}, {}, { busy: true });
  const updatePort = networking.updatePort.bind(networking);
  networking.updatePort = async (...call) => {
    networking.putPort({ ...networking.all()[0]!, host: "destination", revision: 2 });
    return updatePort(...call);
  };
  await look();
  expect(hosts()).toEqual(["destination"]);
});

test("many hosts are looked at with one question a second", async () => {
  const { ports, clock, asked } = setUp({ busy: true });
  const uuids = Array.from({ length: 200 }, () => randomUUID());
  ports.look("h", uuids);
  clock.advance(0);
  await eventually("the first question", () => asked.length === 1 && clock.pending === 1);
  ports.look("i", uuids.slice(0, 50));
  clock.advance(999);
  expect(asked).toHaveLength(1);
  clock.advance(1);
  await eventually("the second question", () => asked.length === 2);
  await ports.stop();
});

test("a look that fails changes nothing, and the next one begins anew", async () => {
  const { ports, clock, look, networking, hosts } = setUp();
  networking.fate = () => "silent";
  await look();
  expect(hosts()).toEqual(["other"]);
  networking.fate = () => "answered";
  ports.look("h", [serverId(1)]);
  clock.advance(1_000);
  await eventually("the binding", () => hosts().join() === "h");
  await ports.stop();
});
