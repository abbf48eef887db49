import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
import type { ServerVolume } from "../../proto/gen/berth/shared.ts";
import type { ConductorSettings } from "../../services/conductor/settings.ts";
import { serverId } from "../contract/cell-fixtures.ts";
import { volumeOf } from "../rigs/begin-operation.ts";
import { eventually } from "../rigs/eventually.ts";
import { SmallCell } from "../rigs/small-cell.ts";

const OWN = { callerToken: null, requestId: null };

let cell: SmallCell;
let cinder: MemoryBlockStorage;
beforeEach(async () => {
  cell = await new SmallCell().open();
  cinder = new MemoryBlockStorage({ newId: randomUUID });
  cell.blockStorage = cinder;
});
afterEach(() => cell.close());

async function start(settings: Partial<ConductorSettings> = {}): Promise<void> {
  await cell.startConductor(1, settings);
  for (const host of [0, 1, 2]) await cell.startAgent({ id: `agent-${host}`, hosts: [host], vcpus: 4 });
  await cell.hostsUp(3);
}

/** A volume of Cinder that the api has reserved for server 1. */
async function reserved(): Promise<ServerVolume> {
  const { id } = cinder.putVolume({ projectId: "one" });
  const kept = await cinder.reserve({ volumeId: id, serverUuid: serverId(1), connector: null }, OWN);
  if (kept.kind !== "reserved") throw new Error(kept.kind);
  return { ...volumeOf(1), volumeId: id, attachmentId: kept.attachment.id, inCinder: true };
}

/** The hosts on which Cinder has finished attachments of each volume. */
const hosts = () => cinder.all().map(({ attachedTo }) => attachedTo.map(({ host }) => host));
const statuses = () => cinder.all().map(({ status }) => status);
const runs = (host: number) => eventually(`it to run on host-${host}`, () => cell.runsOn(1).join() === `host-${host}`);

async function boot(volumes: readonly ServerVolume[]): Promise<void> {
  await cell.boot(1, [0, 1, 2], { volumes });
  await cell.become(1, "ACTIVE");
  await runs(0);
}

describe("the volumes in Cinder of a build", () => {
  test("are connected to its host before the host is told of the guest, with the attachments that were reserved", async () => {
    await start();
    const volumes = [await reserved(), await reserved()];
    const existed: string[] = [];
    cinder.fate = () => {
      existed.push(...cell.existsOn(1));
      return "answered";
    };
    await boot(volumes);
    expect([hosts(), statuses(), existed]).toEqual([[["host-0"], ["host-0"]], ["in-use", "in-use"], []]);
    const ids = (await cinder.attachments({})).map(({ id }) => id);
    expect(ids.toSorted()).toEqual(volumes.map(({ attachmentId }) => attachmentId).toSorted());
  });

  test("are waited for while Cinder makes them", async () => {
    await start();
    const { id } = cinder.putVolume({ projectId: "one", status: "creating" });
    let asked = 0;
    cinder.fate = () => {
      asked += 1;
      if (asked === 3) cinder.finishCreating(id);
      return "answered";
    };
    await boot([{ ...volumeOf(1), volumeId: id, inCinder: true }]);
    expect(hosts()).toEqual([["host-0"]]);
  });

  test("fail the build at its first host with Cinder's reason if they cannot be exported, and at every alternate", async () => {
    await start();
    const volume = await reserved();
    cinder.brokenVolumes.add(volume.volumeId);
    await cell.boot(1, [0, 1], { volumes: [volume] });
    await cell.become(1, "ERROR");
    const attempts = await cell.store.attempts(serverId(1));
    expect(attempts.map(({ host }) => host)).toEqual(["host-0", "host-1"]);
    expect(attempts[0]?.reason).toContain(`Cinder does not connect volume ${volume.volumeId} to host-0`);
    expect(cell.existsOn(1)).toEqual([]);
  });

  test.each(["silent", "lost"] as const)(
    "are connected once when Cinder answers again after a while in which its answers were %s",
    async (fate) => {
      await start();
      const volume = await reserved();
      for (const method of ["attachments", "connect", "complete"] as const) {
        let failures = 0;
        const before = cinder.fate;
        cinder.fate = (called) => {
          if (called !== method || failures > 0) return before(called);
          failures += 1;
          return fate;
        };
      }
      await boot([volume]);
      expect([hosts(), (await cinder.attachments({})).length]).toEqual([[["host-0"]], 1]);
    },
  );

  test("fail the build with the reason, without trying other hosts, when Cinder stays away", async () => {
    await start({ volumeConnectTimeoutMs: 0 });
    const volume = await reserved();
    cinder.fate = () => "silent";
    await cell.boot(1, [0, 1], { volumes: [volume] });
    const { fault } = await cell.become(1, "ERROR");
    expect(fault?.message).toContain("the server's volumes could not be connected to host-0: Cinder does not answer");
    expect([await cell.heldOn(1), cell.existsOn(1)]).toEqual([[], []]);
  });

  test("fail the build when one of them is gone, or where the conductor cannot call Cinder", async () => {
    await start();
    const gone = { ...volumeOf(1), inCinder: true };
    await cell.boot(1, [0, 1], { volumes: [gone] });
    expect((await cell.become(1, "ERROR")).fault?.message).toContain(`Volume ${gone.volumeId} could not be found.`);
    await cell.close();
    cell = await new SmallCell().open();
    await start();
    await cell.boot(1, [0], { volumes: [gone] });
    expect((await cell.become(1, "ERROR")).fault?.message).toContain("set BERTH_VOLUMES=cinder");
  });

  test.each(["connect", "complete"] as const)(
    "are connected once by the next conductor when the first one dies at the call %s",
    async (method) => {
      const first = await cell.startConductor(1);
      for (const host of [0, 1]) await cell.startAgent({ id: `agent-${host}`, hosts: [host], conductors: [1, 2] });
      await cell.hostsUp(2);
      const volume = await reserved();
      let asked = false;
      cinder.fate = (called) => {
        if (called === method) asked = true;
        return called === method ? "lost" : "answered";
      };
      await cell.boot(1, [0, 1], { volumes: [volume] });
      await eventually("the first conductor to call Cinder", () => asked);
      await first.kill();
      cinder.fate = () => "answered";
      await cell.startConductor(2);
      await cell.become(1, "ACTIVE");
      await eventually("the guest to run", () => cell.runsOn(1).length === 1);
      expect([hosts(), (await cinder.attachments({})).length]).toEqual([[cell.runsOn(1)], 1]);
    },
  );
});

describe("the volumes in Cinder of a server that moves", () => {
  test.each(["migrate", "live-migrate"] as const)("are connected to the destination of a %s", async (kind) => {
    await start();
    await boot([await reserved()]);
    await cell.operate({ server: 1, kind, hosts: [1] });
    await cell.rest(1);
    await runs(1);
    expect(hosts()).toEqual([["host-0", "host-1"]]);
  });

  test("are still connected to the source when the move is reverted", async () => {
    await start();
    await boot([await reserved()]);
    await cell.operate({ server: 1, kind: "migrate", hosts: [1] });
    await cell.become(1, "VERIFY_RESIZE");
    await cell.operate({ server: 1, kind: "revert" });
    await cell.become(1, "ACTIVE");
    await runs(0);
    expect(hosts()[0]).toContain("host-0");
  });

  test("leave the guest at the source when Cinder does not connect them to the destination", async () => {
    await start();
    const volume = await reserved();
    await boot([volume]);
    cinder.brokenVolumes.add(volume.volumeId);
    await cell.operate({ server: 1, kind: "live-migrate", hosts: [1] });
    expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-0" });
    await runs(0);
    expect(hosts()).toEqual([["host-0"]]);
  });

  test("do not keep a stopped server from starting at its home while Cinder is silent", async () => {
    await start();
    await boot([await reserved()]);
    await cell.operate({ server: 1, kind: "stop" });
    await cell.become(1, "SHUTOFF");
    cinder.fate = () => "silent";
    await cell.operate({ server: 1, kind: "start" });
    await cell.become(1, "ACTIVE");
    await runs(0);
  });
});

describe("attaching a volume in Cinder", () => {
  test("connects it to the server's host first", async () => {
    await start();
    await boot([]);
    await cell.operate({ server: 1, kind: "attach-volume", volume: await reserved() });
    await eventually("the volume", () => cell.volumesOn(1).length === 1);
    await cell.rest(1);
    expect([hosts(), statuses()]).toEqual([[["host-0"]], ["in-use"]]);
  });

  test("fails with Cinder's reason if it cannot be connected, and the guest gets nothing", async () => {
    await start();
    await boot([]);
    const volume = await reserved();
    cinder.brokenVolumes.add(volume.volumeId);
    await cell.operate({ server: 1, kind: "attach-volume", volume });
    await eventually("the fault", async () => (await cell.server(1)).fault !== null);
    expect((await cell.rest(1)).fault?.message).toContain("the driver cannot export the volume");
    expect([(await cell.server(1)).spec.volumes, cell.volumesOn(1)]).toEqual([[], []]);
  });
});

describe("a volume in Cinder, while the migration of its server waits for a confirmation,", () => {
  const inGuest = async () => [(await cell.server(1)).spec.volumes.map(({ volumeId }) => volumeId), cell.volumesOn(1)];
  const migrate = async () => {
    await cell.operate({ server: 1, kind: "migrate", hosts: [1] });
    await cell.become(1, "VERIFY_RESIZE");
    await runs(1);
  };
  const end = async (kind: "confirm" | "revert") => {
    await cell.operate({ server: 1, kind });
    await cell.become(1, "ACTIVE");
    await runs(kind === "confirm" ? 1 : 0);
    await eventually("one guest", () => cell.existsOn(1).length === 1);
  };

  test.each(["confirm", "revert"] as const)("is connected to both hosts, and in the guest after a %s", async (kind) => {
    await start();
    await boot([]);
    await migrate();
    const volume = await reserved();
    await cell.operate({ server: 1, kind: "attach-volume-unconfirmed", volume });
    expect(await cell.rest(1)).toMatchObject({ status: "VERIFY_RESIZE", host: "host-1", fault: null });
    expect(hosts().map((of) => of.toSorted())).toEqual([["host-0", "host-1"]]);
    await end(kind);
    const host = kind === "confirm" ? "host-1" : "host-0";
    expect(await inGuest()).toEqual([[volume.volumeId], [`${host} ${volume.volumeId}`]]);
  });

  test.each(["confirm", "revert"] as const)("is detached from both guests, and not there after a %s", async (kind) => {
    await start();
    const volume = await reserved();
    await boot([volume]);
    await migrate();
    await cell.operate({ server: 1, kind: "detach-volume-unconfirmed", volume });
    expect(await cell.rest(1)).toMatchObject({ status: "VERIFY_RESIZE", host: "host-1", fault: null });
    expect(await inGuest()).toEqual([[], []]);
    for (const { id } of await cinder.attachments({})) await cinder.deleteAttachment(id);
    await end(kind);
    expect([await inGuest(), statuses()]).toEqual([[[], []], ["available"]]);
  });

  test("is in neither guest if Cinder does not connect it to the source", async () => {
    await start();
    await boot([]);
    await migrate();
    const volume = await reserved();
    const { reserve } = cinder;
    cinder.reserve = async (wanted, by) =>
      wanted.connector?.host === "host-0"
        ? { kind: "refused", why: "no path to host-0" }
        : reserve.call(cinder, wanted, by);
    await cell.operate({ server: 1, kind: "attach-volume-unconfirmed", volume });
    expect((await cell.rest(1)).fault?.message).toContain("no path to host-0");
    expect(await inGuest()).toEqual([[], []]);
    await end("revert");
    expect(await inGuest()).toEqual([[], []]);
  });

  test("waits for a source that is silent, and is in the guest that a revert brings back", async () => {
    await cell.startConductor(1);
    const source = await cell.startAgent({ id: "agent-0", hosts: [0], vcpus: 4 });
    await cell.startAgent({ id: "agent-1", hosts: [1], vcpus: 4 });
    await cell.hostsUp(2);
    await boot([]);
    await migrate();
    source.cutOff();
    const volume = await reserved();
    await cell.operate({ server: 1, kind: "attach-volume-unconfirmed", volume });
    const isNoted = async () =>
      (await cell.server(1)).taskState === "attaching_volume" && cell.volumesOn(1).length === 1;
    await eventually("the destination to have the volume", isNoted);
    expect((await cell.server(1)).spec.volumes).toEqual([]);
    source.reconnect();
    expect(await cell.rest(1)).toMatchObject({ status: "VERIFY_RESIZE", fault: null });
    await end("revert");
    expect(await inGuest()).toEqual([[volume.volumeId], [`host-0 ${volume.volumeId}`]]);
  });
});

describe("the volumes in Cinder of a server that was offloaded", () => {
  /** Attaches a volume as the api does: Cinder shows it as in use before the cell is asked. */
  async function attachOffloaded(): Promise<ServerVolume> {
    const volume = await reserved();
    await cinder.complete(volume.attachmentId);
    await cell.operate({ server: 1, kind: "attach-volume-offloaded", volume });
    await cell.rest(1);
    return volume;
  }
  const inSpec = async () => (await cell.server(1)).spec.volumes.map(({ volumeId }) => volumeId);

  test("are attached without a host, and connected with the same attachment to the host that it gets", async () => {
    await start();
    await boot([]);
    await cell.operate({ server: 1, kind: "shelve-offload" });
    await cell.become(1, "SHELVED_OFFLOADED");
    const volume = await attachOffloaded();
    expect([await inSpec(), hosts(), statuses()]).toEqual([[volume.volumeId], [[""]], ["in-use"]]);
    expect(await cell.server(1)).toMatchObject({ status: "SHELVED_OFFLOADED", host: null });
    await cell.operate({ server: 1, kind: "unshelve", hosts: [1] });
    await cell.become(1, "ACTIVE");
    await runs(1);
    expect([hosts(), cell.volumesOn(1)]).toEqual([[["host-1"]], [`host-1 ${volume.volumeId}`]]);
    expect((await cinder.attachments({})).map(({ id }) => id)).toEqual([volume.attachmentId]);
  });

  test("are connected once when the answer to the connection is lost", async () => {
    await start();
    await boot([]);
    await cell.operate({ server: 1, kind: "shelve-offload" });
    await cell.become(1, "SHELVED_OFFLOADED");
    await attachOffloaded();
    let lost = false;
    cinder.fate = (method) => {
      const isFirst = method === "connect" && !lost;
      lost ||= isFirst;
      return isFirst ? "lost" : "answered";
    };
    await cell.operate({ server: 1, kind: "unshelve", hosts: [1] });
    await cell.become(1, "ACTIVE");
    await runs(1);
    expect([lost, hosts(), (await cinder.attachments({})).length]).toEqual([true, [["host-1"]], 1]);
  });

  test("are detached without a host, also if the guest had them before", async () => {
    await start();
    const volume = await reserved();
    await boot([volume]);
    await cell.operate({ server: 1, kind: "shelve-offload" });
    await cell.become(1, "SHELVED_OFFLOADED");
    await cell.operate({ server: 1, kind: "detach-volume-offloaded", volume });
    await cell.rest(1);
    expect([await inSpec(), (await cell.server(1)).status]).toEqual([[], "SHELVED_OFFLOADED"]);
    await cell.operate({ server: 1, kind: "unshelve", hosts: [1] });
    await cell.become(1, "ACTIVE");
    await runs(1);
    expect(cell.volumesOn(1)).toEqual([]);
  });
});
