import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { MemoryNetworking } from "../../adapters/memory/memory-networking.ts";
import type { ServerPort } from "../../proto/gen/berth/shared.ts";
import type { ConductorSettings } from "../../services/conductor/settings.ts";
import { serverId } from "../contract/cell-fixtures.ts";
import { CellWithPorts } from "../rigs/cell-with-ports.ts";
import { eventually } from "../rigs/eventually.ts";
import type { SmallCell } from "../rigs/small-cell.ts";

let rig: CellWithPorts;
let cell: SmallCell;
let neutron: MemoryNetworking;
beforeEach(async () => {
  rig = await CellWithPorts.open();
  ({ cell, neutron } = rig);
});
afterEach(() => cell.close());

const start = (settings: Partial<ConductorSettings> = {}) => rig.start(settings);
const portOfServer = () => rig.portOfServer();
const hosts = () => rig.hosts();
const runs = (host: number) => rig.runs(host);
const boot = (ports: readonly ServerPort[]) => rig.boot(ports);

describe("the ports of a build", () => {
  test("are bound to its host before the host is told of the guest", async () => {
    await start();
    const ports = [portOfServer(), portOfServer()];
    const boundAt: string[][] = [];
    neutron.fate = () => {
      boundAt.push(cell.existsOn(1));
      return "answered";
    };
    await boot(ports);
    expect(hosts()).toEqual(["host-0", "host-0"]);
    // One question for all ports, and one change of each. A sweep may ask once more when the server runs.
    expect(boundAt.slice(0, 3)).toEqual([[], [], []]);
  });

  test("are bound to the alternate when the first host cannot connect them", async () => {
    await start();
    neutron.hostsWithoutDriver.add("host-0");
    const port = portOfServer();
    await cell.boot(1, [0, 1], { ports: [port] });
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-1" });
    expect(hosts()).toEqual(["host-1"]);
    const [first] = await cell.store.attempts(serverId(1));
    expect(first).toMatchObject({
      host: "host-0",
      result: "failed",
      reason: `Binding failed for port ${port.portId}, please check neutron logs for more information.`,
    });
  });

  test.each(["silent", "lost"] as const)(
    "are bound when Neutron answers again after a while in which its answers were %s",
    async (fate) => {
      await start();
      let calls = 0;
      neutron.fate = () => {
        calls += 1;
        return calls <= 2 ? fate : "answered";
      };
      await boot([portOfServer()]);
      expect(hosts()).toEqual(["host-0"]);
      expect(calls).toBeGreaterThan(2);
    },
  );

  test("fail the build with the reason, without trying other hosts, when Neutron stays away", async () => {
    await start({ portBindTimeoutMs: 0 });
    neutron.fate = () => "silent";
    await cell.boot(1, [0, 1], { ports: [portOfServer()] });
    const { fault } = await cell.become(1, "ERROR");
    expect(fault?.message).toContain("the server's ports could not be bound to host-0: Neutron does not answer");
    expect([await cell.heldOn(1), cell.existsOn(1), hosts()]).toEqual([[], [], [""]]);
  });

  test("fail the build when one of them is gone, or has been taken away from the server", async () => {
    await start();
    const [gone, taken] = [portOfServer(), portOfServer()];
    await neutron.deletePort(gone.portId, null);
    await cell.boot(1, [0, 1], { ports: [taken, gone] });
    expect((await cell.become(1, "ERROR")).fault?.message).toContain(`Port id ${gone.portId} could not be found.`);
  });

  test("fail the build where the conductor cannot call Neutron, and say what to set", async () => {
    cell.networking = null;
    await start();
    await cell.boot(1, [0, 1], { ports: [portOfServer()] });
    expect((await cell.become(1, "ERROR")).fault?.message).toContain("set BERTH_NETWORKS=neutron");
  });

  test("are bound by the next conductor when the first one dies while it binds them", async () => {
    const first = await cell.startConductor(1);
    for (const host of [0, 1]) await cell.startAgent({ id: `agent-${host}`, hosts: [host], conductors: [1, 2] });
    await cell.hostsUp(2);
    let asked = false;
    neutron.fate = () => {
      asked = true;
      return "lost";
    };
    await cell.boot(1, [0, 1], { ports: [portOfServer()] });
    await eventually("the first conductor to ask Neutron", () => asked);
    await first.kill();
    neutron.fate = () => "answered";
    await cell.startConductor(2);
    await cell.become(1, "ACTIVE");
    await eventually("the guest to run", () => cell.runsOn(1).length === 1);
    expect(hosts()).toEqual(cell.runsOn(1));
  });

  /** Neutron's agent reports on the ports that are bound to a host. */
  const plug = (host: string, status: string) => {
    for (const port of neutron.all()) if (port.host === host) neutron.putPort({ ...port, status });
  };
  const guestOn = (host: string) =>
    eventually(`a guest on ${host}`, () => cell.existsOn(1).includes(host) && hosts().includes(host));

  test("are awaited before the prepared guest runs, whichever conductor waits", async () => {
    neutron.statusWhenBound = "DOWN";
    const first = await cell.startConductor(1, { vifPluggingTimeoutMs: 60_000 });
    for (const host of [0, 1]) await cell.startAgent({ id: `agent-${host}`, hosts: [host], conductors: [1, 2] });
    await cell.hostsUp(2);
    await cell.boot(1, [0, 1], { ports: [portOfServer(), portOfServer()] });
    await guestOn("host-0");
    expect((await cell.store.servers([serverId(1)]))[0]?.status).toBe("BUILD");
    await first.kill();
    // The agent's next try to dial may come later than the usual grace, and then the build would go on at the alternate.
    await cell.startConductor(2, { vifPluggingTimeoutMs: 60_000, hostGraceMs: 60_000 });
    expect(cell.runsOn(1)).toEqual([]);
    plug("host-0", "ACTIVE");
    await cell.become(1, "ACTIVE");
    await runs(0);
  });

  test("that Neutron's agent cannot connect send the build to the alternate", async () => {
    neutron.statusWhenBound = "DOWN";
    await start({ vifPluggingTimeoutMs: 60_000 });
    const port = portOfServer();
    await cell.boot(1, [0, 1], { ports: [port] });
    await guestOn("host-0");
    plug("host-0", "ERROR");
    await guestOn("host-1");
    plug("host-1", "ACTIVE");
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-1" });
    const [attempt] = await cell.store.attempts(serverId(1));
    expect(attempt?.reason).toBe(`Neutron could not connect port ${port.portId} on host-0: its status is ERROR.`);
    await eventually("one guest", () => cell.existsOn(1).join() === "host-1");
  });

  test("that are never connected fail the build in the end", async () => {
    neutron.statusWhenBound = "DOWN";
    await start({ vifPluggingTimeoutMs: 50 });
    await cell.boot(1, [0], { ports: [portOfServer()] });
    expect((await cell.become(1, "ERROR")).fault?.message).toContain("is DOWN on host-0");
    await eventually("no guest", () => cell.existsOn(1).length === 0);
  });

  test("that are never connected do not hold a guest up for ever if a missing network is not fatal", async () => {
    neutron.statusWhenBound = "DOWN";
    await start({ vifPluggingTimeoutMs: 50, vifPluggingIsFatal: false });
    await boot([portOfServer()]);
  });

  test("are left alone when the server is deleted while Neutron is silent", async () => {
    await start();
    let asked = false;
    neutron.fate = () => {
      asked = true;
      return "silent";
    };
    await cell.boot(1, [0, 1], { ports: [portOfServer()] });
    await eventually("the conductor to ask Neutron", () => asked);
    await cell.delete(1);
    await cell.become(1, "DELETED");
    neutron.fate = () => "answered";
    expect([hosts(), cell.existsOn(1)]).toEqual([[""], []]);
  });
});

describe("the ports of a server that moves", () => {
  test.each(["migrate", "live-migrate"] as const)("are bound to the destination of a %s", async (kind) => {
    await start();
    await boot([portOfServer()]);
    await cell.operate({ server: 1, kind, hosts: [1] });
    await cell.rest(1);
    await runs(1);
    expect(hosts()).toEqual(["host-1"]);
  });

  test("are bound to the source again when the move is reverted", async () => {
    await start();
    await boot([portOfServer()]);
    await cell.operate({ server: 1, kind: "migrate", hosts: [1] });
    await cell.become(1, "VERIFY_RESIZE");
    expect(hosts()).toEqual(["host-1"]);
    await cell.operate({ server: 1, kind: "revert" });
    await cell.become(1, "ACTIVE");
    await runs(0);
    expect(hosts()).toEqual(["host-0"]);
  });

  test("stay at the source, where the guest runs on, when no driver of the destination can connect them", async () => {
    await start();
    await boot([portOfServer()]);
    neutron.hostsWithoutDriver.add("host-1");
    await cell.operate({ server: 1, kind: "live-migrate", hosts: [1] });
    expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-0" });
    await runs(0);
    await eventually("the port to be back", () => hosts().join() === "host-0");
  });

  test("are bound when a server that was moved while it was shut off is started", async () => {
    await start();
    await boot([portOfServer()]);
    await cell.operate({ server: 1, kind: "stop" });
    await cell.become(1, "SHUTOFF");
    await cell.operate({ server: 1, kind: "migrate", hosts: [1] });
    await cell.become(1, "VERIFY_RESIZE");
    await cell.operate({ server: 1, kind: "confirm" });
    await cell.become(1, "SHUTOFF");
    expect(hosts()).toEqual(["host-1"]);
    await cell.operate({ server: 1, kind: "start" });
    await cell.become(1, "ACTIVE");
    expect(hosts()).toEqual(["host-1"]);
  });

  /** Neutron's agent connects the ports that are bound to a host, or fails to. */
  const plug = (host: string, status = "ACTIVE") => {
    for (const port of neutron.all()) if (port.host === host) neutron.putPort({ ...port, status });
  };
  const bound = (host: string) => eventually(`ports on ${host}`, () => hosts().every((one) => one === host));

  test.each(["migrate", "evacuate", "unshelve"] as const)(
    "are awaited before the guest runs at the destination of %s, also by the next conductor",
    async (kind) => {
      // The agents may dial the next conductor later than its usual grace lasts.
      const waiting = { vifPluggingTimeoutMs: 60_000, hostGraceMs: 60_000 };
      const first = await cell.startConductor(1, waiting);
      for (const host of [0, 1])
        await cell.startAgent({ id: `agent-${host}`, hosts: [host], conductors: [1, 2], vcpus: 4 });
      await cell.hostsUp(2);
      await boot([portOfServer()]);
      neutron.statusWhenBound = "DOWN";
      if (kind === "unshelve") {
        await cell.operate({ server: 1, kind: "shelve-offload" });
        await cell.become(1, "SHELVED_OFFLOADED");
      }
      if (kind === "evacuate") await cell.store.hostAdmin().setForcedDown("host-0", true);
      await cell.operate({ server: 1, kind, hosts: [1], unseenMs: 100 });
      await bound("host-1");
      await first.kill();
      await cell.startConductor(2, waiting);
      expect(cell.runsOn(1)).not.toContain("host-1");
      plug("host-1");
      await cell.rest(1);
      await runs(1);
    },
  );

  test("that Neutron's agent cannot connect at the destination are bound to the source again, where the server goes on", async () => {
    await start({ vifPluggingTimeoutMs: 60_000 });
    const port = portOfServer();
    await boot([port]);
    neutron.statusWhenBound = "DOWN";
    await cell.operate({ server: 1, kind: "migrate", hosts: [1] });
    await bound("host-1");
    plug("host-1", "ERROR");
    expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-0" });
    await runs(0);
    expect(hosts()).toEqual(["host-0"]);
  });

  test("that are never connected at the destination send the server back when the time is over", async () => {
    await start({ vifPluggingTimeoutMs: 50 });
    await boot([portOfServer()]);
    neutron.statusWhenBound = "DOWN";
    await cell.operate({ server: 1, kind: "migrate", hosts: [1] });
    expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-0" });
    await runs(0);
  });

  test("that are connected before the wait begins, or are not fatal, hold no move up", async () => {
    await start({ vifPluggingTimeoutMs: 50, vifPluggingIsFatal: false });
    await boot([portOfServer()]);
    await cell.operate({ server: 1, kind: "migrate", hosts: [1] });
    expect(await cell.become(1, "VERIFY_RESIZE")).toMatchObject({ host: "host-1" });
    neutron.statusWhenBound = "DOWN";
    await cell.operate({ server: 1, kind: "revert" });
    await cell.become(1, "ACTIVE");
    await cell.operate({ server: 1, kind: "migrate", hosts: [1] });
    await cell.become(1, "VERIFY_RESIZE");
    await runs(1);
  });

  test("of a live migration without bindings in advance, a start and a hard reboot are not awaited", async () => {
    await start({ vifPluggingTimeoutMs: 60_000 });
    neutron.hasExtendedBindings = false;
    await boot([portOfServer()]);
    neutron.statusWhenBound = "DOWN";
    await cell.operate({ server: 1, kind: "live-migrate", hosts: [1] });
    await cell.rest(1);
    await runs(1);
    await cell.operate({ server: 1, kind: "hard-reboot" });
    await cell.rest(1);
    await runs(1);
  });

  test("do not keep a stopped server from starting at its home while Neutron is silent", async () => {
    await start();
    await boot([portOfServer()]);
    await cell.operate({ server: 1, kind: "stop" });
    await cell.become(1, "SHUTOFF");
    neutron.fate = () => "silent";
    await cell.operate({ server: 1, kind: "start" });
    await cell.become(1, "ACTIVE");
    await runs(0);
  });
});
