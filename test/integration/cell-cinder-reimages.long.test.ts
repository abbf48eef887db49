import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
import type { BlockStorage } from "../../core/stores/block-storage.ts";
import type { ServerVolume } from "../../proto/gen/berth/shared.ts";
import type { ConductorSettings } from "../../services/conductor/settings.ts";
import { serverId } from "../contract/cell-fixtures.ts";
import { volumeOf } from "../rigs/begin-operation.ts";
import { eventually } from "../rigs/eventually.ts";
import { SmallCell } from "../rigs/small-cell.ts";

const IMAGE = "70a599e0-31e7-49b7-b260-868f441e862b";
const OTHER_IMAGE = "155d900f-4e14-4e4c-a73d-069cbf4541e6";
/** A machine that has much other work to do, and pauses of Cinder that double. */
const PATIENT = { withinMs: 100_000 };
const OWN = { callerToken: null, requestId: null };

let cell: SmallCell;
let cinder: MemoryBlockStorage;
let first: Awaited<ReturnType<SmallCell["startConductor"]>>;
/** The boot volume of server 1, as the operation names it. */
let volume: ServerVolume;
beforeEach(async () => {
  cell = await new SmallCell().open();
  cinder = new MemoryBlockStorage({ newId: randomUUID });
  cinder.holdsReimages = true;
  cell.blockStorage = cinder;
});
afterEach(async () => {
  await cell.close();
  // No process may touch a volume while Cinder writes to it.
  expect(cinder.fills.disturbances).toEqual([]);
});

/** Server 1 runs on host-0 and boots from a volume of Cinder. */
async function running(conductor: Partial<ConductorSettings> = {}): Promise<void> {
  first = await cell.startConductor(1, conductor);
  await cell.startAgent({ id: "agent-0", hosts: [0], vcpus: 4, conductors: [1, 2] });
  await cell.hostsUp(1);
  const { id } = cinder.putVolume({ projectId: "one" });
  const kept = await cinder.reserve({ volumeId: id, serverUuid: serverId(1), connector: null }, OWN);
  if (kept.kind !== "reserved") throw new Error(kept.kind);
  const root = { ...volumeOf(1), volumeId: id, attachmentId: kept.attachment.id, inCinder: true, isRoot: true };
  await cell.boot(1, [0], { volumes: [root] });
  await cell.become(1, "ACTIVE");
  volume = { ...root, imageRef: IMAGE };
}

const rebuild = () => cell.operate({ server: 1, kind: "reimage", hosts: [0], volume });
const find = () => cinder.all().find((one) => one.id === volume.volumeId);
const isFilling = () => eventually("Cinder to fill the volume", () => find()?.status === "downloading", PATIENT);
/** The reason why the server's operation has ended in ERROR. */
const failedAs = async () => (await cell.rest(1)).fault?.message;

/** The new guest runs with the volume that has the image's content, and the former guest is gone. */
async function isRebuilt(formerAttempt: string | null, imageId = IMAGE): Promise<void> {
  const server = await eventually(
    "the server to be rebuilt",
    async () => {
      const found = await cell.server(1);
      if (found.taskState !== null) return null;
      if (found.status === "ERROR") throw new Error(found.fault?.message ?? "ERROR, without a reason");
      return found;
    },
    PATIENT,
  );
  expect([server.status, server.host]).toEqual(["ACTIVE", "host-0"]);
  expect(server.attemptId).not.toBe(formerAttempt);
  await eventually("the former guest to be gone", () => cell.existsOn(1).length === 1, PATIENT);
  expect([cell.runsOn(1), cell.volumesOn(1)]).toEqual([["host-0"], [`host-0 ${volume.volumeId}`]]);
  expect(find()).toMatchObject({
    ...{ status: "in-use", imageProperties: { image_id: imageId } },
    attachedTo: [expect.objectContaining({ serverUuid: serverId(1), host: "host-0" })],
  });
  expect(server.spec.volumes).toMatchObject([{ volumeId: volume.volumeId, imageRef: "" }]);
  expect(await cell.holds(serverId(1))).toEqual({ "host-0": 1 });
}

test("Cinder fills the boot volume while no guest of the server runs and no host has the volume", async () => {
  await running();
  const { attemptId } = await cell.server(1);
  await rebuild();
  await isFilling();
  expect([cell.runsOn(1), find()?.attachedTo]).toEqual([[], []]);
  expect(await cell.server(1)).toMatchObject({ status: "ACTIVE", taskState: "rebuilding", attemptId });
  cinder.fills.finish(true);
  await isRebuilt(attemptId);
});

test("a server becomes ERROR, with the reason, when Cinder cannot fill its volume, and can be started again", async () => {
  await running();
  const { attemptId } = await cell.server(1);
  await rebuild();
  await isFilling();
  cinder.fills.finish(false);
  expect(await cell.become(1, "ERROR")).toMatchObject({
    ...{ taskState: null, attemptId, fault: { message: expect.stringMatching(/^Cinder could not fill volume/) } },
  });
  await eventually("the new guest to be gone", () => cell.existsOn(1).length === 1, PATIENT);
  expect([cell.runsOn(1), await cell.holds(serverId(1))]).toEqual([[], { "host-0": 1 }]);
  // Cinder's operator has mended the volume.
  cinder.putVolume({ ...find()!, status: "reserved" });
  await cell.operate({ server: 1, kind: "hard-reboot" });
  expect(await cell.become(1, "ACTIVE")).toMatchObject({ attemptId });
  await eventually("Cinder to show the host", () => find()?.attachedTo[0]?.host === "host-0", PATIENT);
});

/** Cinder takes longer than the rebuild waits for it. */
async function overdue(conductor: Partial<ConductorSettings> = {}): Promise<string | null> {
  await running({ reimageMsPerGib: 1_500, ...conductor });
  const { attemptId } = await cell.server(1);
  await rebuild();
  await isFilling();
  expect((await cell.become(1, "ERROR")).fault?.message).toMatch(/^Cinder has not filled volume .* within 2 s/);
  await cell.rest(1);
  return attemptId;
}

test("a server becomes ERROR when Cinder takes longer than it may, and no guest of it runs before Cinder has filled the volume: a hard reboot waits for that", async () => {
  const attemptId = await overdue();
  await cell.operate({ server: 1, kind: "hard-reboot" });
  let looks = 0;
  cinder.fate = (method) => {
    if (method === "volume") looks += 1;
    return "answered";
  };
  await eventually("the conductor to look at the volume several times", () => looks >= 3, PATIENT);
  expect([cell.runsOn(1), find()?.status]).toEqual([[], "downloading"]);
  cinder.fills.finish(true);
  expect(await cell.become(1, "ACTIVE")).toMatchObject({ attemptId });
  await eventually("Cinder to show the host", () => find()?.attachedTo[0]?.host === "host-0", PATIENT);
  expect([cell.runsOn(1), find()?.imageProperties.image_id]).toEqual([["host-0"], IMAGE]);
});

test("a hard reboot while Cinder is silent starts no guest of a server whose volume Cinder may be filling", async () => {
  await overdue({ volumeConnectTimeoutMs: 1_000 });
  cinder.fate = () => "silent";
  await cell.operate({ server: 1, kind: "hard-reboot" });
  await eventually("the refusal", async () => /silent/.test((await failedAs()) ?? ""), PATIENT);
  expect([(await cell.server(1)).status, cell.runsOn(1)]).toEqual(["ERROR", []]);
});

test("the restore of a server that was deleted while Cinder fills its volume starts no guest while Cinder is silent", async () => {
  const attemptId = await overdue({ volumeConnectTimeoutMs: 1_000 });
  await cell.operate({ server: 1, kind: "soft-delete" });
  await cell.become(1, "SOFT_DELETED");
  cinder.fate = () => "silent";
  await cell.operate({ server: 1, kind: "restore" });
  await eventually("the refusal", async () => /silent/.test((await failedAs()) ?? ""), PATIENT);
  expect([(await cell.server(1)).status, cell.runsOn(1)]).toEqual(["SOFT_DELETED", []]);
  cinder.fate = () => "answered";
  cinder.fills.finish(true);
  await cell.operate({ server: 1, kind: "restore" });
  expect(await cell.become(1, "ACTIVE")).toMatchObject({ attemptId });
});

test("a second rebuild while Cinder still fills the volume for the first one does not ask Cinder before that has ended", async () => {
  await overdue();
  const { attemptId } = await cell.server(1);
  let asks = 0;
  let looks = 0;
  cinder.fate = (method) => {
    if (method === "reimage") asks += 1;
    if (method === "volume") looks += 1;
    return "answered";
  };
  volume = { ...volume, imageRef: OTHER_IMAGE };
  await rebuild();
  await eventually("the conductor to look at the volume several times", () => looks >= 3, PATIENT);
  expect([asks, find()?.status]).toEqual([0, "downloading"]);
  cinder.holdsReimages = false;
  cinder.fills.finish(true);
  await isRebuilt(attemptId, OTHER_IMAGE);
  expect(asks).toBe(1);
});

test("a rebuild that fails while Cinder still fills the volume for the first one starts no guest", async () => {
  await overdue({ volumeConnectTimeoutMs: 1_000 });
  await rebuild();
  await eventually("the refusal", async () => /still downloading/.test((await failedAs()) ?? ""), PATIENT);
  expect([(await cell.server(1)).status, cell.runsOn(1), find()?.status]).toEqual(["ERROR", [], "downloading"]);
});

test("the rebuild goes on as soon as Cinder's event has come", async () => {
  await running({ reimageMsPerGib: 600_000 });
  const { attemptId } = await cell.server(1);
  await rebuild();
  await isFilling();
  let looks = 0;
  cinder.fate = (method) => {
    if (method === "volume") looks += 1;
    return "answered";
  };
  await eventually("the pauses to have grown", () => looks >= 3, PATIENT);
  cinder.fills.finish(true);
  await cell.store.notePlugged([{ serverUuid: serverId(1), portId: volume.volumeId, isFailed: false }]);
  await isRebuilt(attemptId);
});

test("a server whose volume Cinder does not fill at all runs as it was before", async () => {
  await running();
  const { attemptId } = await cell.server(1);
  cinder.reimage = async () => ({ kind: "refused", why: "image is not there" });
  await rebuild();
  await eventually("the refusal", async () => (await cell.server(1)).fault !== null, PATIENT);
  const server = await cell.rest(1);
  expect(server).toMatchObject({
    ...{ status: "ACTIVE", attemptId, fault: { message: expect.stringMatching(/does not fill.*image is not there/) } },
  });
  await eventually("the guest to run", () => cell.runsOn(1).length === 1, PATIENT);
  await eventually("Cinder to show the host", () => find()?.attachedTo[0]?.host === "host-0", PATIENT);
  await eventually("the new guest to be gone", () => cell.existsOn(1).length === 1, PATIENT);
});

test.each(["as it ends one", "after it has refused to fill the volume"])(
  "no guest runs over a connection that Cinder has ended when Cinder falls silent %s, and a hard reboot connects the volume again",
  async (when) => {
    await running({ volumeConnectTimeoutMs: 1_000 });
    const { attemptId } = await cell.server(1);
    /** How many more calls Cinder answers. */
    let left = Number.POSITIVE_INFINITY;
    cinder.fate = (method) => {
      left -= 1;
      if (left < 0) return "silent";
      if (method !== "deleteAttachment" || when !== "as it ends one") return "answered";
      left = 0;
      return "lost";
    };
    cinder.reimage = async () => {
      // The conductor asks once more for the volume's status.
      left = 1;
      return { kind: "refused", why: "it is not allowed" };
    };
    await rebuild();
    await cell.become(1, "ERROR");
    await cell.rest(1);
    expect([cell.runsOn(1), find()?.status]).toEqual([[], "reserved"]);
    cinder.fate = () => "answered";
    await cell.operate({ server: 1, kind: "hard-reboot" });
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ attemptId });
    await eventually("Cinder to show the host", () => find()?.attachedTo[0]?.host === "host-0", PATIENT);
    expect([cell.runsOn(1), find()?.status]).toEqual([["host-0"], "in-use"]);
  },
);

const CALLS: readonly (keyof BlockStorage)[] = ["reserve", "deleteAttachment", "reimage"];
test.each(CALLS)("the next conductor finishes a rebuild when the first one dies at the call %s", async (method) => {
  await running();
  const { attemptId } = await cell.server(1);
  let isAsked = false;
  cinder.fate = (called) => {
    if (called === method) isAsked = true;
    return called === method ? "lost" : "answered";
  };
  await rebuild();
  await eventually("the first conductor to call Cinder", () => isAsked, PATIENT);
  await first.kill();
  // Cinder goes on, whatever has become of the conductor, and is finished at some moment after the next one has begun. That one may have the volume filled once more.
  cinder.fate = () => "answered";
  await cell.startConductor(2);
  await isFilling();
  expect(cell.runsOn(1)).toEqual([]);
  cinder.holdsReimages = false;
  cinder.fills.finish(true);
  await isRebuilt(attemptId);
});

test("a server can be deleted while Cinder fills its volume", async () => {
  await running();
  await rebuild();
  await isFilling();
  await cell.delete(1);
  await eventually("the server to be gone", async () => (await cell.server(1)).status === "DELETED", PATIENT);
  await eventually("its guests to be gone", () => cell.existsOn(1).length === 0, PATIENT);
  expect(await cell.holds(serverId(1))).toEqual({});
});
