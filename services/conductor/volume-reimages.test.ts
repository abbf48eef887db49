import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
import type { BlockStorage } from "../../core/stores/block-storage.ts";
import type { PluggedPort } from "../../core/stores/cell/plug-store.ts";
import { OWN_NAME } from "../../core/stores/networking.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { serverId } from "../../test/contract/cell-fixtures.ts";
import { volumeOf } from "../../test/rigs/begin-operation.ts";
import { VolumeReimages } from "./volume-reimages.ts";

const SERVER = serverId(1);
const IMAGE = "70a599e0-31e7-49b7-b260-868f441e862b";
const OTHER_IMAGE = "155d900f-4e14-4e4c-a73d-069cbf4541e6";
const SILENCE_MS = 10_000;
const tenure = { taskId: "t", serverUuid: SERVER, epoch: 1 };

let cinder: MemoryBlockStorage;
let volumeId: string;
let isHeld: boolean;
let isWanted: boolean;
let clock: ManualClock;
/** How often Cinder was asked to fill the volume. */
let asks: number;
/** How often Cinder was asked for the volume. */
let looks = 0;
/** What the cell's database has of Cinder's events. */
let reported: readonly PluggedPort[];
beforeEach(async () => {
  [isHeld, isWanted, clock, asks, reported] = [true, true, new ManualClock(), 0, []];
  cinder = new MemoryBlockStorage({ newId: randomUUID });
  cinder.fate = (method) => count(method);
  volumeId = cinder.putVolume({ projectId: "one", sizeGib: 2 }).id;
  const connector = { host: "host-0", initiator: "i" };
  const kept = await cinder.reserve({ volumeId, serverUuid: SERVER, connector }, OWN_NAME);
  if (kept.kind !== "reserved") throw new Error(kept.kind);
  await cinder.complete(kept.attachment.id);
});

// No call of a conductor may touch a volume that is being filled.
afterEach(() => expect(cinder.fills.disturbances).toEqual([]));

function count(method: keyof BlockStorage, fate: "answered" | "silent" | "lost" = "answered") {
  if (method === "reimage") asks += 1;
  if (method === "volume") looks += 1;
  return method === "reimage" ? fate : "answered";
}

/** One conductor. `mayBeAsked`: another one may have asked Cinder before. */
function reimage(mayBeAsked = false, storage: BlockStorage | null = cinder, silenceMs = SILENCE_MS) {
  const reimages = new VolumeReimages(
    { storage, store: { holdsTask: async () => isHeld, pluggedPorts: async () => [reported] }, clock },
    { volumeConnectTimeoutMs: silenceMs, reimageMsPerGib: 20_000 },
  );
  const volume = { ...volumeOf(1), volumeId, inCinder: true, isRoot: true, imageRef: IMAGE };
  return reimages.reimage(SERVER, volume, { tenure, attemptId: "t/0", mayBeAsked, isWanted: () => isWanted });
}

/** Every call of the twin takes a few turns, and the database is asked at the end of a turn. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 60; turn += 1) await Promise.resolve();
  await new Promise(setImmediate);
  for (let turn = 0; turn < 60; turn += 1) await Promise.resolve();
}

/** Lets the time go by, second after second, until the conductor has an outcome. Returns the outcome, and the seconds. */
async function after(asking: ReturnType<typeof reimage>, each: (second: number) => void = () => {}) {
  let outcome: object | null = null;
  asking?.then((one) => {
    outcome = one;
  });
  for (let second = 0; second < 200; second += 1) {
    await turns();
    if (outcome !== null) return { outcome, second };
    each(second);
    clock.advance(1_000);
  }
  throw new Error("no outcome");
}

const find = () => cinder.all()[0];
const known = (reason: RegExp) => ({ kind: "failed", reason: expect.stringMatching(reason), final: true });
const unknown = (reason: RegExp) => ({ ...known(reason), isUnknown: true });

test("the volume is filled while one attachment without a host keeps it for the server", async () => {
  cinder.holdsReimages = true;
  const { outcome } = await after(reimage(), (second) => {
    if (second !== 3) return;
    expect(find()).toMatchObject({ status: "downloading", attachedTo: [] });
    cinder.fills.finish(true);
  });
  expect(outcome).toEqual({ kind: "ended" });
  expect(find()).toMatchObject({ status: "reserved", imageProperties: { image_id: IMAGE } });
  expect(await cinder.attachments({ volumeId })).toMatchObject([{ serverUuid: SERVER, status: "reserved" }]);
  expect(asks).toBe(1);
});

test.each(["silent", "lost"] as const)("Cinder is asked until it answers when its first answer is %s", async (fate) => {
  cinder.holdsReimages = true;
  cinder.fate = (method) => count(method, asks === 0 ? fate : "answered");
  const { outcome } = await after(reimage(), (second) => second === 5 && cinder.fills.finish(true));
  expect(outcome).toEqual({ kind: "ended" });
  // A volume that is being filled shows that Cinder has heard the question.
  expect(asks).toBe(fate === "silent" ? 2 : 1);
});

test("a conductor that takes over waits for a volume that is being filled, and has one filled once more of which it cannot tell", async () => {
  cinder.holdsReimages = true;
  const first = reimage();
  await Promise.resolve();
  for (let turn = 0; turn < 60; turn += 1) await Promise.resolve();
  expect([find()?.status, asks]).toEqual(["downloading", 1]);
  isWanted = false;
  clock.advance(1_000);
  expect(await first).toEqual({ kind: "unwanted" });
  isWanted = true;
  const second = await after(reimage(true), (at) => at === 3 && cinder.fills.finish(true));
  expect([second.outcome, asks]).toEqual([{ kind: "ended" }, 1]);
  const third = await after(reimage(true), () => cinder.fills.finish(true));
  expect([third.outcome, asks]).toEqual([{ kind: "ended" }, 2]);
});

test("it is unknown what the volume holds when Cinder could not fill it, or has not within the time for its size", async () => {
  cinder.holdsReimages = true;
  const failed = await after(reimage(), (second) => second === 2 && cinder.fills.finish(false));
  expect(failed.outcome).toEqual(unknown(/^Cinder could not fill volume .* status is error/));
  cinder.putVolume({ ...find()!, status: "reserved" });
  const late = await after(reimage());
  expect(late.outcome).toEqual(unknown(/^Cinder has not filled volume .* within 40 s, and may still do so/));
  expect(late.second).toBeGreaterThanOrEqual(40);
});

test("a volume that Cinder refuses to fill holds what it held, unless Cinder may have been asked before", async () => {
  const other = { volumeId, serverUuid: serverId(2), connector: null };
  cinder.putVolume({ ...find()!, isMultiattach: true });
  await cinder.reserve(other, OWN_NAME);
  expect((await after(reimage())).outcome).toEqual(known(/^Cinder does not fill volume .*more than one server/));
  expect((await after(reimage(true))).outcome).toEqual(unknown(/^Cinder does not fill volume .*more than one server/));
});

test("a volume stays as it is while Cinder is silent from the beginning, and nobody knows when its answer to the question was lost", async () => {
  cinder.fate = () => "silent";
  const { outcome, second } = await after(reimage());
  expect([outcome, second]).toEqual([known(/^Cinder could not be asked to fill volume .*silent/), SILENCE_MS / 1_000]);
  let isAway = false;
  cinder.fate = (method) => {
    if (method === "reimage") isAway = true;
    return isAway ? "silent" : "answered";
  };
  expect((await after(reimage())).outcome).toEqual(unknown(/^Cinder could not be asked to fill volume .*silent/));
});

test.each(["silent", "lost"] as const)(
  "nobody knows how a guest has the volume when Cinder falls silent as its attachment is ended (%s)",
  async (fate) => {
    let isAway = false;
    cinder.fate = (method) => {
      if (isAway) return "silent";
      if (method !== "deleteAttachment") return count(method);
      isAway = true;
      return fate;
    };
    expect((await after(reimage())).outcome).toEqual(unknown(/^Cinder could not be asked to fill volume .*silent/));
    expect(asks).toBe(0);
  },
);

test("a conductor that has lost its task writes nothing, and one without Cinder says what is missing", async () => {
  isHeld = false;
  const before = await cinder.attachments({ volumeId });
  expect((await after(reimage())).outcome).toEqual({ kind: "unwanted" });
  expect([await cinder.attachments({ volumeId }), asks]).toEqual([before, 0]);
  expect(await reimage(false, null)).toEqual(known(/BERTH_VOLUMES=cinder/));
  expect(await reimage(true, null)).toEqual(unknown(/BERTH_VOLUMES=cinder/));
});

test("a volume that somebody else has filled is not filled a second time meanwhile, and nobody knows what it holds then", async () => {
  cinder.holdsReimages = true;
  const [{ id } = { id: "" }] = await cinder.attachments({ volumeId });
  await cinder.reserve({ volumeId, serverUuid: SERVER, connector: null }, OWN_NAME);
  await cinder.deleteAttachment(id);
  await cinder.reimage({ volumeId, imageId: OTHER_IMAGE });
  const { outcome, second } = await after(reimage());
  expect([outcome, second, asks]).toEqual([unknown(/^Cinder fills volume .* already, for somebody else/), 0, 1]);
  // A conductor that takes over cannot tell whose fill it is before it has ended.
  const taken = await after(reimage(true), (at) => at === 3 && cinder.fills.finish(true));
  expect([taken.outcome, asks]).toEqual([unknown(new RegExp(`shows for the volume is ${OTHER_IMAGE}$`)), 1]);
});

test("a volume whose status an administrator has set while Cinder was filling it is not taken for one that is filled", async () => {
  cinder.holdsReimages = true;
  const { outcome } = await after(reimage(), (at) => {
    if (at === 4) cinder.putVolume({ ...find()!, status: "reserved" });
  });
  expect(outcome).toEqual(unknown(/the image that it shows for the volume is none$/));
});

test("Cinder is looked at after growing pauses, and at once when its event has come", async () => {
  [cinder.holdsReimages, looks] = [true, 0];
  cinder.putVolume({ ...find()!, sizeGib: 10 });
  const slow = await after(reimage(), (at) => at === 50 && cinder.fills.finish(true));
  expect([slow.outcome, looks]).toEqual([{ kind: "ended" }, 9]);
  looks = 0;
  const quick = await after(reimage(), (at) => {
    if (at !== 33) return;
    cinder.fills.finish(true);
    reported = [{ portId: volumeId, isFailed: false }];
  });
  expect([quick.outcome, quick.second]).toEqual([{ kind: "ended" }, 34]);
  // An event that comes too early, or twice, ends nothing.
  const early = await after(reimage(), (at) => at === 20 && cinder.fills.finish(true));
  expect(early.outcome).toEqual({ kind: "ended" });
  expect(early.second).toBeGreaterThan(20);
});

test("a Cinder that falls silent is not asked without pauses when the time for the fill is over", async () => {
  [cinder.holdsReimages, looks] = [true, 0];
  let isSilent = false;
  cinder.fate = (method) => (isSilent && count(method) === "answered" ? "silent" : "answered");
  const { second } = await after(reimage(false, cinder, 120_000), (at) => {
    isSilent = at >= 10;
  });
  expect(second).toBeGreaterThan(100);
  expect(looks).toBeLessThan(20);
});

test("all reimages that wait for Cinder's event ask the database in one question a second, whenever they began", async () => {
  cinder.holdsReimages = true;
  const volumes = [1, 2, 3].map((n) => ({
    serverUuid: serverId(n),
    ...cinder.putVolume({ projectId: "one", sizeGib: 20 }),
  }));
  const asked: (readonly string[])[] = [];
  const pluggedPorts = async (attemptIds: readonly string[]) => {
    asked.push(attemptIds);
    const isOver = asked.length > 20;
    return attemptIds.map((id) => (isOver ? [{ portId: id, isFailed: false }] : []));
  };
  const reimages = new VolumeReimages(
    { storage: cinder, store: { holdsTask: async () => true, pluggedPorts }, clock },
    { volumeConnectTimeoutMs: SILENCE_MS, reimageMsPerGib: 20_000 },
  );
  const ended: string[] = [];
  for (const { id, serverUuid } of volumes) {
    // The event names the volume, and so does the attempt here.
    const volume = { ...volumeOf(1), volumeId: id, inCinder: true, isRoot: true, imageRef: IMAGE };
    const need = { tenure, attemptId: id, mayBeAsked: false, isWanted: () => true };
    void reimages.reimage(serverUuid, volume, need)?.then(({ kind }) => ended.push(kind));
    await turns();
    clock.advance(300);
  }
  for (let tenth = 0; tenth < 180; tenth += 1) {
    await turns();
    clock.advance(100);
  }
  expect(asked.length).toBeGreaterThan(10);
  expect(asked.length).toBeLessThan(20);
  expect(asked.at(-1)?.toSorted()).toEqual(volumes.map(({ id }) => id).toSorted());
  cinder.fills.finish(true);
  for (let second = 0; second < 60 && ended.length < 3; second += 1) {
    await turns();
    clock.advance(1_000);
  }
  expect(ended).toEqual(["ended", "ended", "ended"]);
});
