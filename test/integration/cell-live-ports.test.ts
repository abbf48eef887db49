import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MemoryNetworking } from "../../adapters/memory/memory-networking.ts";
import type { Driver } from "../../services/compute-agent/driver.ts";
import type { FakeDriver } from "../../services/compute-agent/fake-driver.ts";
import type { FakeScript } from "../../services/compute-agent/fake-script.ts";
import type { ConductorSettings } from "../../services/conductor/settings.ts";
import { serverId } from "../contract/cell-fixtures.ts";
import { OWN_NETWORK, putContractNetworks } from "../contract/networking.contract.ts";
import { eventually } from "../rigs/eventually.ts";
import { SmallCell } from "../rigs/small-cell.ts";

let cell: SmallCell;
let neutron: MemoryNetworking;
/** The calls to Neutron that change something, with the hosts that have a guest at that moment. */
let calls: string[];
type Method = Parameters<MemoryNetworking["fate"]>[0];

beforeEach(async () => {
  cell = await new SmallCell().open();
  neutron = new MemoryNetworking({ newId: randomUUID });
  putContractNetworks(neutron);
  cell.networking = neutron;
  calls = [];
  answerAll();
});
afterEach(() => cell.close());

const CHANGES: readonly Method[] = ["createBinding", "activateBinding", "deleteBinding", "updatePort"];
function answerAll(): void {
  neutron.fate = (method) => {
    if (CHANGES.includes(method)) calls.push(`${method} ${cell.existsOn(1).toSorted().join(" ")}`);
    return "answered";
  };
}
/** Neutron treats the next so many calls of a method like this. */
function fail(method: Method, fate: "silent" | "lost", times = Number.POSITIVE_INFINITY): void {
  let left = times;
  neutron.fate = (called) => {
    if (called !== method || left === 0) return "answered";
    left -= 1;
    return fate;
  };
}

/** How the hosts were told that the ports are connected. */
let vifs: string[];
/** Hosts that cannot start guests. */
const failingStarts = new Set<string>();

/** Observes the driver, and lets its starts fail on some hosts. */
const observed = (driver: FakeDriver): Driver =>
  new Proxy(driver, {
    get: (target, name) => {
      if (name === "prepare")
        return (...args: Parameters<Driver["prepare"]>) => {
          for (const { vif } of args[0].server.ports) vifs.push(`${args[0].host} ${vif?.type} ${vif?.details}`);
          return target.prepare(...args);
        };
      if (name === "start")
        return async (...args: Parameters<Driver["start"]>) => {
          if (failingStarts.has(args[0].host)) throw new Error("the firmware is broken");
          return target.start(...args);
        };
      const value = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });

async function startWith(conductor: number, settings: Partial<ConductorSettings> = {}, fake: FakeScript = {}) {
  vifs = [];
  failingStarts.clear();
  const started = await cell.startConductor(conductor, settings);
  for (const host of [0, 1, 2])
    await cell.startAgent({ id: `agent-${host}`, hosts: [host], vcpus: 4, conductors: [1, 2], before: observed });
  await cell.hostsUp(3);
  const port = neutron.putPort({ projectId: "one", networkId: OWN_NETWORK, deviceId: serverId(1) });
  const { id: portId, macAddress } = port;
  const own = { portId, networkId: OWN_NETWORK, tag: "", networkName: "own", addresses: [], floatingAddresses: [] };
  await cell.boot(1, [0, 1, 2], { ports: [{ ...own, slot: 0, macAddress }], fake });
  await cell.become(1, "ACTIVE");
  await runs(0);
  calls.length = 0;
  return { ...started, portId };
}
const start = (settings: Partial<ConductorSettings> = {}, fake: FakeScript = {}) => startWith(1, settings, fake);
const runs = (host: number) => eventually(`it to run on host-${host}`, () => cell.runsOn(1).join() === `host-${host}`);
const live = (...hosts: number[]) => cell.operate({ server: 1, kind: "live-migrate", hosts });
/** The bindings of the port, whatever Neutron does to calls. */
async function bindings(): Promise<string[]> {
  const { fate } = neutron;
  neutron.fate = () => "answered";
  const found = (await neutron.bindings(neutron.all()[0]!.id)) ?? [];
  neutron.fate = fate;
  return found.map(({ host, isActive }) => `${host}${isActive ? "" : " prepared"}`).toSorted();
}
const boundTo = async (...expected: string[]) => {
  let found: string[] = [];
  await eventually(`bindings to ${expected}`, async () => {
    found = await bindings();
    return found.join() === expected.join();
  }).catch(() => expect(found).toEqual(expected));
};

describe("the ports of a live migration", () => {
  test("are prepared for the destination before its guest is made, bound to it at the switch, and leave the source before its guest is destroyed", async () => {
    await start();
    await live(1);
    expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-1" });
    await runs(1);
    // The update tells Neutron of the destination.
    const prepared = ["createBinding host-0", "updatePort host-0"];
    expect(calls).toEqual([...prepared, "activateBinding host-0 host-1", "deleteBinding host-0 host-1"]);
    expect(await bindings()).toEqual(["host-1"]);
  });

  test("tell each host how Neutron connects them there, before its guest is made", async () => {
    await start();
    await live(1);
    await cell.rest(1);
    expect(vifs).toEqual(['host-0 ovs {"bridge_name":"br-host-0"}', 'host-1 ovs {"bridge_name":"br-host-1"}']);
  });

  test("are bound at the switch by an update where Neutron has no bindings to several hosts", async () => {
    neutron.hasExtendedBindings = false;
    await start();
    await live(1);
    await cell.rest(1);
    await runs(1);
    expect(calls).toEqual(["updatePort host-0 host-1"]);
    expect(await bindings()).toEqual(["host-1"]);
  });

  test("are prepared for the next destination when no driver of the first one connects them, before any guest is made there", async () => {
    await start();
    neutron.hostsWithoutDriver.add("host-1");
    await live(1, 2);
    expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-2" });
    await runs(2);
    expect(await bindings()).toEqual(["host-2"]);
    expect(calls[1]).toBe("createBinding host-0");
  });

  test("stay at the source, and have no other binding, when the source does not hand over", async () => {
    await start({}, { hand_off_failures: 9 });
    await live(1);
    expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-0" });
    await runs(0);
    await boundTo("host-0");
    expect(calls.map((call) => call.split(" ")[0])).toEqual([
      ...["createBinding", "updatePort"],
      ...["updatePort", "deleteBinding"],
    ]);
    expect(neutron.all()[0]?.profile).toEqual({});
  });

  test("are bound to the source again when the destination cannot start the guest", async () => {
    await start();
    neutron.statusWhenBound = "ACTIVE";
    failingStarts.add("host-1");
    await live(1);
    expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-0" });
    await runs(0);
    await boundTo("host-0");
    expect(neutron.all()[0]).toMatchObject({ vifType: "ovs" });
  });

  test.each(["createBinding", "activateBinding", "deleteBinding"] as const)(
    "arrive with their server, bound to its host alone, when the answer to %s is lost",
    async (method) => {
      await start();
      fail(method, "lost", 1);
      await live(1);
      expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-1" });
      await runs(1);
      await boundTo("host-1");
    },
  );

  test.each(["createBinding", "activateBinding"] as const)(
    "stay with their server, bound to its host alone, when Neutron does not answer %s in time",
    async (method) => {
      await start({ portBindTimeoutMs: 0 });
      fail(method, "silent");
      await live(1);
      expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-0" });
      await runs(0);
      await boundTo("host-0");
    },
  );

  test("are bound at the switch when the prepared binding is gone by then", async () => {
    await start();
    const activate = neutron.activateBinding.bind(neutron);
    neutron.activateBinding = async (id, host) => {
      neutron.activateBinding = activate;
      await neutron.deleteBinding(id, host);
      return activate(id, host);
    };
    await live(1);
    expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-1" });
    await boundTo("host-1");
  });

  test("stay with their server when one of them is gone at the beginning", async () => {
    const { portId } = await start();
    await neutron.deletePort(portId, null);
    await live(1);
    expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-0" });
  });

  test.each(["migrate", "live-migrate"] as const)(
    "that were left with a binding to an earlier host lose it at the next %s, also when that goes to this host",
    async (kind) => {
      await start();
      fail("deleteBinding", "silent");
      await live(1);
      await cell.rest(1);
      await runs(1);
      expect(await bindings()).toEqual(["host-0 prepared", "host-1"]);
      answerAll();
      await cell.operate({ server: 1, kind, hosts: [0] });
      await cell.rest(1);
      await runs(0);
      await boundTo("host-0");
      expect(neutron.all()[0]).toMatchObject({ host: "host-0", vifType: "ovs" });
    },
  );

  test.each(["createBinding", "activateBinding", "deleteBinding"] as const)(
    "are bound to the server's host alone when the conductor dies at %s, and another one goes on",
    async (method) => {
      const first = await startWith(1);
      let asked = false;
      neutron.fate = (called) => {
        if (called !== method) return "answered";
        asked = true;
        return "lost";
      };
      await live(1);
      await eventually(`the first conductor to call ${method}`, () => asked);
      await first.kill();
      answerAll();
      await cell.startConductor(2);
      expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-1" });
      await runs(1);
      await boundTo("host-1");
    },
  );
});
