import { afterEach, beforeEach, expect, test } from "vitest";
import type { MemoryNetworking } from "../../adapters/memory/memory-networking.ts";
import type { ServerPort } from "../../proto/gen/berth/shared.ts";
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

/** What an api writes when Neutron says that the port is connected where its server is about to go, or cannot be. */
const report = ({ portId }: ServerPort, isFailed = false) =>
  cell.store.notePlugged([{ serverUuid: serverId(1), portId, isFailed }]);
/** The destination has prepared its guest, and Neutron knows where the server is going. */
const prepared = (host: string) =>
  eventually(`a guest on ${host}`, () => {
    const isTold = neutron.all().every(({ profile }) => profile.migrating_to === host);
    return isTold && cell.existsOn(1).includes(host);
  });
const TWO_CONDUCTORS = { conductors: [1, 2], vcpus: 4 };

test("a server's ports are awaited before a live guest leaves its source, also by the next conductor, whatever becomes of their status", async () => {
  const waiting = { vifPluggingTimeoutMs: 60_000 };
  const first = await cell.startConductor(1, waiting);
  for (const host of [0, 1]) await cell.startAgent({ id: `agent-${host}`, hosts: [host], ...TWO_CONDUCTORS });
  await cell.hostsUp(2);
  const [one, other] = [rig.portOfServer(), rig.portOfServer()];
  await rig.boot([one, other]);
  neutron.statusWhenBound = "DOWN";
  await cell.operate({ server: 1, kind: "live-migrate", hosts: [1] });
  await prepared("host-1");
  await report(one);
  await report(one);
  await first.kill();
  await cell.startConductor(2, waiting);
  expect([cell.runsOn(1), rig.hosts()]).toEqual([["host-0"], ["host-0", "host-0"]]);
  await report(other);
  await cell.rest(1);
  await rig.runs(1);
  expect(rig.hosts()).toEqual(["host-1", "host-1"]);
  expect(neutron.all().map(({ profile }) => profile)).toEqual([{}, {}]);
});

test("ports that are connected at the next destination only are awaited there, and an event about the former one came too early", async () => {
  await rig.start({ vifPluggingTimeoutMs: 60_000 });
  const port = rig.portOfServer();
  await rig.boot([port]);
  await cell.operate({ server: 1, kind: "live-migrate", hosts: [1, 2] });
  await prepared("host-1");
  await report(port, true);
  await prepared("host-2");
  expect(cell.runsOn(1)).toEqual(["host-0"]);
  await report(port);
  await cell.rest(1);
  await rig.runs(2);
  expect([rig.hosts(), neutron.all().map(({ profile }) => profile)]).toEqual([["host-2"], [{}]]);
});

test.each([true, false])(
  "ports that nobody reports as connected at the destination of a live migration keep the guest at its source, if that is fatal: %s",
  async (vifPluggingIsFatal) => {
    await rig.start({ vifPluggingTimeoutMs: 50, vifPluggingIsFatal });
    await rig.boot([rig.portOfServer()]);
    await cell.operate({ server: 1, kind: "live-migrate", hosts: [1] });
    const [task] = (await cell.store.tasksOf(serverId(1))).slice(-1);
    await cell.rest(1);
    await rig.runs(vifPluggingIsFatal ? 0 : 1);
    const attempts = (await cell.store.attempts(serverId(1))).filter(({ taskId }) => taskId === task?.task.id);
    const why = /The network was not ready within 0 s: Neutron has not reported \(network-vif-plugged\) that port/;
    expect(attempts.map(({ reason }) => reason)).toEqual([vifPluggingIsFatal ? expect.stringMatching(why) : null]);
    await eventually("Neutron to know of no move", () => neutron.all()[0]?.profile.migrating_to === undefined);
  },
);

test("ports are not awaited in a live migration where an operator says so", async () => {
  await rig.start({ vifPluggingTimeoutMs: 60_000, liveMigrationAwaitsVifs: false });
  await rig.boot([rig.portOfServer()]);
  await cell.operate({ server: 1, kind: "live-migrate", hosts: [1] });
  await cell.rest(1);
  await rig.runs(1);
});
