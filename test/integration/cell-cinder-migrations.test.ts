import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
import type { BlockStorage } from "../../core/stores/block-storage.ts";
import type { ServerVolume } from "../../proto/gen/berth/shared.ts";
import type { Driver } from "../../services/compute-agent/driver.ts";
import type { FakeDriver } from "../../services/compute-agent/fake-driver.ts";
import type { FakeScript } from "../../services/compute-agent/fake-script.ts";
import type { ConductorSettings } from "../../services/conductor/settings.ts";
import { serverId } from "../contract/cell-fixtures.ts";
import { volumeOf } from "../rigs/begin-operation.ts";
import { eventually } from "../rigs/eventually.ts";
import { SmallCell } from "../rigs/small-cell.ts";

/** Long enough to be seen, and short enough to be waited for. */
const PAUSE = { volumeEndPauseMs: 300 };
const OWN = { callerToken: null, requestId: null };

let cell: SmallCell;
let cinder: MemoryBlockStorage;
let first: Awaited<ReturnType<SmallCell["startConductor"]>>;
/** The volume of server 1, as the operation names it. */
let volume: ServerVolume;
beforeEach(async () => {
  cell = await new SmallCell().open();
  cinder = new MemoryBlockStorage({ newId: randomUUID });
  cell.blockStorage = cinder;
});
afterEach(() => cell.close());

/** Server 1 runs on host-0 with a volume that Cinder has begun to migrate. */
async function running({
  fake,
  before,
  conductor = {},
}: {
  readonly fake?: FakeScript;
  readonly before?: (driver: FakeDriver) => Driver;
  readonly conductor?: Partial<ConductorSettings>;
} = {}): Promise<void> {
  first = await cell.startConductor(1, { ...PAUSE, ...conductor });
  await cell.startAgent({
    id: "agent-0",
    hosts: [0],
    vcpus: 4,
    conductors: [1, 2],
    ...(fake && { fake }),
    ...(before && { before }),
  });
  await cell.hostsUp(1);
  const { id } = cinder.putVolume({ projectId: "one" });
  const kept = await cinder.reserve({ volumeId: id, serverUuid: serverId(1), connector: null }, OWN);
  if (kept.kind !== "reserved") throw new Error(kept.kind);
  volume = { ...volumeOf(1), volumeId: id, attachmentId: kept.attachment.id, inCinder: true };
  await cell.boot(1, [0], { volumes: [volume] });
  await cell.become(1, "ACTIVE");
  const { id: replacedBy } = cinder.startMigration(id);
  await cinder.reserve({ volumeId: replacedBy, serverUuid: serverId(1), connector: null }, OWN);
  volume = { ...volume, replacedBy };
}

/** The first change over to a copy, or the first such step, is what `fail` makes of it. */
function failingOnce(
  driver: FakeDriver,
  fail: (work: () => Promise<void>) => Promise<void>,
  failing: "mirror" | "pivot" = "pivot",
): Driver {
  let hasFailed = false;
  const changeVolume: Driver["changeVolume"] = (guest, one, step, signal) => {
    const work = () => driver.changeVolume(guest, one, step, signal);
    if (step !== failing || hasFailed) return work();
    hasFailed = true;
    return fail(work);
  };
  return new Proxy<Driver>(driver, {
    get: (target, name: keyof Driver) => {
      if (name === "changeVolume") return changeVolume;
      const value = target[name];
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

const swap = () => cell.operate({ server: 1, kind: "swap-volume", volume });
const usedVolumes = () => cell.volumesOn(1).map((one) => one.replace("host-0 ", ""));
const find = (id: string) => cinder.all().find((one) => one.id === id);
const isAttachedTo = (host: string) => [expect.objectContaining({ serverUuid: serverId(1), host })];

/** The guest uses the other volume, which Cinder has given the id of the first one. */
async function isReplaced(): Promise<void> {
  expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", fault: null });
  expect(usedVolumes()).toEqual([volume.replacedBy]);
  expect((await cell.server(1)).spec.volumes).toEqual([
    expect.objectContaining({ volumeId: volume.volumeId, replacedBy: "" }),
  ]);
  expect(find(volume.replacedBy)).toBeUndefined();
  expect(find(volume.volumeId)).toMatchObject({
    ...{ status: "in-use", migrationStatus: "success", attachedTo: isAttachedTo("host-0") },
  });
  const [attachment] = await cinder.attachments({ volumeId: volume.volumeId });
  expect((await cinder.attachment(attachment?.id ?? ""))?.connection).toMatchObject({
    name: `volume-${volume.replacedBy}`,
  });
}

/** The guest uses its own volume, and Cinder has dropped the other one. */
async function isKept(why: string): Promise<void> {
  expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", fault: { message: expect.stringContaining(why) } });
  expect(usedVolumes()).toEqual([volume.volumeId]);
  expect((await cell.server(1)).spec.volumes).toEqual([expect.objectContaining({ replacedBy: "" })]);
  expect(find(volume.replacedBy)).toBeUndefined();
  expect(find(volume.volumeId)).toMatchObject({
    ...{ status: "in-use", migrationStatus: "error", attachedTo: isAttachedTo("host-0") },
  });
}

test("a volume that Cinder migrates is replaced by the other one, which is connected to the host before", async () => {
  await running();
  let hadOther = true;
  cinder.fate = (method) => {
    if (method === "complete") hadOther = usedVolumes().includes(volume.replacedBy);
    return "answered";
  };
  await swap();
  await eventually("Cinder to be told", () => find(volume.volumeId)?.migrationStatus === "success");
  await isReplaced();
  expect(hadOther).toBe(false);
});

test("a guest keeps its volume, and Cinder drops the other one, if its host cannot copy it", async () => {
  await running({ fake: { replace_failures: 1 } });
  await swap();
  await eventually("Cinder to be told", () => find(volume.volumeId)?.migrationStatus === "error");
  await isKept("the other volume is broken");
});

test("a guest that could not change over to the copy keeps its volume", async () => {
  await running({
    before: (driver) =>
      failingOnce(driver, async () => {
        throw new Error("the copy is broken");
      }),
  });
  await swap();
  await eventually("Cinder to be told", () => find(volume.volumeId)?.migrationStatus === "error");
  await isKept("the copy is broken");
});

test("a guest that has changed over to the copy although its host says that it could not has the other volume", async () => {
  await running({
    before: (driver) =>
      failingOnce(driver, async (pivot) => {
        await pivot();
        throw new Error("QEMU did not answer in time");
      }),
  });
  await swap();
  await eventually("Cinder to be told", () => find(volume.volumeId)?.migrationStatus === "success");
  await isReplaced();
});

test("a guest does not change over to a volume that Cinder has begun to delete while the host copied to it", async () => {
  let pivots = 0;
  await running({
    before: (driver) =>
      failingOnce(
        failingOnce(driver, async () => {
          pivots += 1;
        }) as FakeDriver,
        async (mirror) => {
          await mirror();
          const { attachedTo: _, ...other } = find(volume.replacedBy)!;
          cinder.putVolume({ ...other, status: "deleting" });
        },
        "mirror",
      ),
  });
  await swap();
  await eventually("Cinder to be told", () => find(volume.volumeId)?.migrationStatus === "error");
  await isKept("Cinder no longer migrates volume");
  expect(pivots).toBe(0);
});

test("a volume whose replacement Cinder cannot connect to the host stays, and the other one is dropped", async () => {
  await running();
  cinder.brokenVolumes.add(volume.replacedBy);
  await swap();
  await eventually("Cinder to be told", () => find(volume.volumeId)?.migrationStatus === "error");
  await isKept("the driver cannot export the volume");
});

test.each(["silent", "lost"] as const)(
  "Cinder is told once how a replacement has ended, although its answer is %s for a while",
  async (fate) => {
    await running();
    let [calls, ended] = [0, 0];
    cinder.fate = (method) => {
      if (method !== "endMigration") return "answered";
      calls += 1;
      if (calls > 1) ended += 1;
      return calls > 1 ? "answered" : fate;
    };
    await swap();
    await eventually("Cinder to be told", () => find(volume.volumeId)?.migrationStatus === "success");
    await isReplaced();
    // A migration whose end was lost is seen to have ended.
    expect(ended).toBe(fate === "lost" ? 0 : 1);
  },
);

test("a server waits, and uses the other volume, while Cinder is away longer than conductors wait for it", async () => {
  await running({ conductor: { volumeConnectTimeoutMs: 0 } });
  let [isAway, asked] = [true, 0];
  cinder.fate = (method) => {
    if (method !== "endMigration") return "answered";
    asked += 1;
    return isAway ? "silent" : "answered";
  };
  await swap();
  // The conductor has given up the first wait when it asks again.
  await eventually("Cinder to be asked again", () => asked >= 2);
  const { status, taskState, fault, spec } = await cell.server(1);
  expect([status, taskState, fault, spec.volumes[0]?.replacedBy, usedVolumes()]).toEqual([
    ...["ACTIVE", "swapping_volume", null],
    ...[volume.replacedBy, [volume.replacedBy]],
  ]);
  isAway = false;
  await eventually("Cinder to be told", () => find(volume.volumeId)?.migrationStatus === "success");
  await isReplaced();
});

const CALLS: readonly (keyof BlockStorage)[] = ["connect", "complete", "deleteAttachment", "endMigration"];
test.each(CALLS)("the next conductor finishes a replacement when the first one dies at the call %s", async (method) => {
  await running();
  let isAsked = false;
  cinder.fate = (called) => {
    if (called === method) isAsked = true;
    return called === method ? "lost" : "answered";
  };
  await swap();
  await eventually("the first conductor to call Cinder", () => isAsked);
  await first.kill();
  cinder.fate = () => "answered";
  await cell.startConductor(2, PAUSE);
  await eventually("Cinder to be told", () => find(volume.volumeId)?.migrationStatus === "success");
  await isReplaced();
});

describe("while the server's move waits for its confirmation, a volume that Cinder migrates", () => {
  beforeEach(async () => {
    await running();
    await cell.startAgent({ id: "agent-1", hosts: [1], vcpus: 4, conductors: [1, 2] });
    await cell.hostsUp(2);
    // The move connects the server's volumes as they are in its spec.
    await cell.operate({ server: 1, kind: "migrate", hosts: [1] });
    await cell.become(1, "VERIFY_RESIZE");
  });
  const swapUnconfirmed = () => cell.operate({ server: 1, kind: "swap-volume-unconfirmed", volume });
  const hostsOf = async (id: string) =>
    find(id)
      ?.attachedTo.map(({ host }) => host)
      .toSorted();
  const end = async (kind: "confirm" | "revert") => {
    await cell.operate({ server: 1, kind });
    await cell.become(1, "ACTIVE");
    await eventually("one guest", () => cell.existsOn(1).length === 1);
    return [kind === "confirm" ? "host-1" : "host-0", cell.volumesOn(1)];
  };
  const isDone = async (outcome: "success" | "error") => {
    await eventually("Cinder to be told", () => find(volume.volumeId)?.migrationStatus === outcome);
    return cell.rest(1);
  };
  /** The names of the files by which the two hosts reach the volume. */
  const names = async () => {
    const kept = await cinder.attachments({ volumeId: volume.volumeId, serverUuid: serverId(1) });
    return Promise.all(kept.map(async ({ id }) => (await cinder.attachment(id))?.connection?.name));
  };

  test.each(["confirm", "revert"] as const)(
    "is replaced in both guests, and the other one is in the guest after a %s",
    async (kind) => {
      await swapUnconfirmed();
      expect(await isDone("success")).toMatchObject({
        status: "VERIFY_RESIZE",
        host: "host-1",
        fault: null,
        taskState: null,
      });
      expect(find(volume.replacedBy)).toBeUndefined();
      expect([await hostsOf(volume.volumeId), await names()]).toEqual([
        ["host-0", "host-1"],
        [`volume-${volume.replacedBy}`, `volume-${volume.replacedBy}`],
      ]);
      expect((await cell.server(1)).spec.volumes).toMatchObject([{ volumeId: volume.volumeId, replacedBy: "" }]);
      const [host, volumes] = await end(kind);
      // The guest that ran has changed over to the other one; the one that was kept has got it under the volume's own id.
      const used = kind === "confirm" ? volume.replacedBy : volume.volumeId;
      expect(volumes).toEqual([`${host} ${used}`]);
    },
  );

  test.each(["confirm", "revert"] as const)(
    "stays in both guests, also after a %s, if Cinder does not connect the other one",
    async (kind) => {
      cinder.brokenVolumes.add(volume.replacedBy);
      await swapUnconfirmed();
      const fault = { message: expect.stringContaining("the driver cannot export the volume") };
      expect(await isDone("error")).toMatchObject({ status: "VERIFY_RESIZE", fault });
      expect([find(volume.replacedBy), await names()]).toEqual([
        undefined,
        [0, 1].map(() => `volume-${volume.volumeId}`),
      ]);
      const [host, volumes] = await end(kind);
      expect(volumes).toEqual([`${host} ${volume.volumeId}`]);
    },
  );

  test("is replaced although Cinder does not connect it to the source in the end, whose guest lacks it until it is connected, and is not reverted to before that", async () => {
    const { reserve } = cinder;
    cinder.reserve = async (wanted, by) =>
      wanted.connector?.host === "host-0"
        ? { kind: "refused", why: "no path to host-0" }
        : reserve.call(cinder, wanted, by);
    await swapUnconfirmed();
    const fault = {
      message: expect.stringMatching(/^The volume was replaced, but host-0 cannot connect.*no path to host-0.*Confirm/),
    };
    expect(await isDone("success")).toMatchObject({ status: "VERIFY_RESIZE", fault });
    await cell.operate({ server: 1, kind: "revert" });
    const kept = `The guest that host-0 keeps for a revert lacks volume ${volume.volumeId} of the server`;
    await eventually("the revert to be refused", async () => (await cell.server(1)).fault?.message.startsWith(kept));
    expect(await cell.rest(1)).toMatchObject({ status: "VERIFY_RESIZE", host: "host-1" });
    expect(cell.existsOn(1)).toHaveLength(2);
    const own = { ...volume, replacedBy: "" };
    const reconnect = () => cell.operate({ server: 1, kind: "reconnect-volume-unconfirmed", volume: own });
    await reconnect();
    const cannot = { message: expect.stringMatching(/^host-0 cannot connect the volume .*no path to host-0/) };
    await eventually("the source to be told in vain", async () =>
      (await cell.server(1)).fault?.message.startsWith("host-0"),
    );
    expect(await cell.rest(1)).toMatchObject({ status: "VERIFY_RESIZE", fault: cannot });
    cinder.reserve = reserve;
    await reconnect();
    await cell.rest(1);
    await eventually("both hosts to have it", async () => (await hostsOf(volume.volumeId))?.length === 2);
    expect(await end("revert")).toEqual(["host-0", [`host-0 ${volume.volumeId}`]]);
  });

  test.each(CALLS)(
    "is replaced by the next conductor when the first one dies at the call %s, and a revert has the other one",
    async (method) => {
      let isAsked = false;
      cinder.fate = (called) => {
        if (called === method) isAsked = true;
        return called === method ? "lost" : "answered";
      };
      await swapUnconfirmed();
      await eventually("the first conductor to call Cinder", () => isAsked);
      await first.kill();
      cinder.fate = () => "answered";
      await cell.startConductor(2, PAUSE);
      expect(await isDone("success")).toMatchObject({ status: "VERIFY_RESIZE", fault: null });
      expect(await names()).toEqual([0, 1].map(() => `volume-${volume.replacedBy}`));
      expect(await end("revert")).toEqual(["host-0", [`host-0 ${volume.volumeId}`]]);
    },
  );
});
