import { randomUUID } from "node:crypto";
import { beforeEach, expect, test } from "vitest";
import { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
import type { ReplacementEnd } from "../../adapters/openstack/replacement-ender.ts";
import type { BlockStorage } from "../../core/stores/block-storage.ts";
import { OWN_NAME } from "../../core/stores/networking.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { serverId } from "../../test/contract/cell-fixtures.ts";
import { volumeOf } from "../../test/rigs/begin-operation.ts";
import { VolumeReplacements } from "./volume-replacements.ts";

const SERVER = serverId(1);
const tenure = { taskId: "t", serverUuid: SERVER, epoch: 1 };

let cinder: MemoryBlockStorage;
let volumeId: string;
let replacedBy: string;
let isHeld: boolean;
/** The attachments of the volume that the guest has left have ended, which the task's stage says. */
let hasLeft: boolean;
let clock: ManualClock;
/** One conductor. */
let first: VolumeReplacements;
const conductor = (storage: BlockStorage | null) =>
  new VolumeReplacements(
    { storage, store: { holdsTask: async () => isHeld }, clock },
    { volumeConnectTimeoutMs: 0, volumeEndPauseMs: 75_000 },
  );
beforeEach(async () => {
  [isHeld, hasLeft, clock] = [true, false, new ManualClock()];
  cinder = new MemoryBlockStorage({ newId: randomUUID });
  volumeId = cinder.putVolume({ projectId: "one" }).id;
  await attach(volumeId);
  replacedBy = cinder.startMigration(volumeId).id;
  await attach(replacedBy);
  first = conductor(cinder);
});

async function attach(id: string, serverUuid = SERVER): Promise<void> {
  const connector = { host: "host-0", initiator: "i" };
  const kept = await cinder.reserve({ volumeId: id, serverUuid, connector }, OWN_NAME);
  if (kept.kind !== "reserved") throw new Error(kept.kind);
  await cinder.complete(kept.attachment.id);
}

function tell(how: ReplacementEnd, { replacements = first, inCinder = true, epoch = 1 } = {}) {
  const volume = { ...volumeOf(1), volumeId, replacedBy, inCinder };
  return replacements.end(SERVER, volume, how, { tenure: { ...tenure, epoch }, isWanted: () => true });
}
async function end(how: "complete" | "abandon", replacements = first) {
  if (how === "complete" && !hasLeft) {
    const left = await tell("leave", { replacements });
    hasLeft = left?.kind === "ended";
    if (!hasLeft) return left;
  }
  return tell(how, { replacements });
}
const attached = async (id: string) => (await cinder.attachments({ volumeId: id })).length;
const find = (id: string) => cinder.all().find((one) => one.id === id);

test("Cinder is told of each end once, after the attachment of the volume that the guest does not use has ended", async () => {
  const ids: string[] = [];
  const remember = cinder.deleteAttachment.bind(cinder);
  cinder.deleteAttachment = async (id) => {
    ids.push((await cinder.attachment(id))?.volumeId ?? "");
    return remember(id);
  };
  for (let time = 0; time < 2; time += 1) expect(await end("complete")).toEqual({ kind: "ended" });
  expect([find(replacedBy), find(volumeId)?.status, await attached(volumeId), ids]).toEqual([
    undefined,
    "in-use",
    1,
    [volumeId],
  ]);
});

test("the other volume is dropped, and the volume stays as it is", async () => {
  for (let time = 0; time < 2; time += 1) expect(await end("abandon")).toEqual({ kind: "ended" });
  expect([find(replacedBy), find(volumeId)?.status, await attached(volumeId)]).toEqual([undefined, "in-use", 1]);
});

test("a conductor that has lost its task changes nothing", async () => {
  isHeld = false;
  for (const how of ["complete", "abandon"] as const) expect(await end(how)).toEqual({ kind: "unwanted" });
  expect([await attached(volumeId), await attached(replacedBy), find(volumeId)?.migrationStatus]).toEqual([
    1,
    1,
    "migrating",
  ]);
});

test("attachments of other servers stay", async () => {
  cinder.putVolume({ ...find(volumeId)!, isMultiattach: true });
  await attach(volumeId, serverId(2));
  const deleted: string[] = [];
  const remember = cinder.deleteAttachment.bind(cinder);
  cinder.deleteAttachment = async (id) => {
    deleted.push((await cinder.attachment(id))?.serverUuid ?? "");
    return remember(id);
  };
  expect(await end("complete")).toEqual({ kind: "ended" });
  expect(deleted).toEqual([SERVER]);
});

test("a migration that somebody else has ended, while the guest uses the other volume, is left to the operator", async () => {
  cinder.putVolume({ ...find(replacedBy)!, migrationStatus: "" });
  expect(await end("complete")).toMatchObject({
    ...{ kind: "failed", reason: expect.stringContaining("whose data the guest uses (migration status: migrating)") },
  });
  expect(await end("abandon")).toEqual({ kind: "ended" });
  expect([await attached(volumeId), await attached(replacedBy)]).toEqual([1, 1]);
});

test.each(["migrating", "error"])(
  "a completion whose answer was lost has ended, also if Cinder has migrated the volume again since (%s)",
  async (migrationStatus) => {
    cinder.fate = (method) => (method === "endMigration" ? "lost" : "answered");
    expect(await end("complete")).toMatchObject({ kind: "failed" });
    cinder.fate = () => "answered";
    cinder.putVolume({ ...find(volumeId)!, migrationStatus });
    expect(await end("complete")).toEqual({ kind: "ended" });
    expect(await attached(volumeId)).toBe(1);
  },
);

test("another conductor, which knows nothing but the task's stage, sees that the completion has ended although Cinder migrates the volume again", async () => {
  cinder.fate = (method) => (method === "endMigration" ? "lost" : "answered");
  expect(await end("complete")).toMatchObject({ kind: "failed" });
  cinder.fate = () => "answered";
  cinder.startMigration(volumeId);
  const asked = countEnds();
  expect(await end("complete", conductor(cinder))).toEqual({ kind: "ended" });
  expect([asked(), await attached(volumeId)]).toEqual([0, 1]);
});

test("a migration that somebody else has called off after its volume had lost its attachments is left to the operator", async () => {
  expect(await tell("leave")).toEqual({ kind: "ended" });
  cinder.putVolume({ ...find(volumeId)!, migrationStatus: "error" });
  cinder.putVolume({ ...find(replacedBy)!, status: "deleting" });
  expect(await tell("complete", { replacements: conductor(cinder) })).toMatchObject({ kind: "failed" });
  cinder.startMigration(volumeId);
  expect(await tell("complete", { replacements: conductor(cinder) })).toMatchObject({ kind: "failed" });
});

test("a conductor that has the task once more waits, since another one may have asked for the completion meanwhile", async () => {
  expect(await tell("leave")).toEqual({ kind: "ended" });
  const asked = countEnds();
  expect(await tell("complete", { epoch: 3 })).toMatchObject({
    reason: expect.stringContaining("asked again in 75 s"),
  });
  // An attachment that a host got late says nothing about that.
  await attach(volumeId);
  expect(await tell("complete", { replacements: conductor(cinder) })).toMatchObject({ kind: "failed" });
  expect(asked()).toBe(0);
});

test.each(["migrating", "error"])(
  "a completion that an earlier version has asked for without writing it down has ended, also if Cinder has migrated the volume again since (%s)",
  async (migrationStatus) => {
    await cinder.endMigration({ volumeId, targetId: replacedBy, hasFailed: false });
    cinder.putVolume({ ...find(volumeId)!, migrationStatus });
    const asked = countEnds();
    expect(await end("complete")).toEqual({ kind: "ended" });
    expect([asked(), await attached(volumeId)]).toEqual([0, 1]);
  },
);

test("a migration whose other volume is gone, while the host still has the volume's own file, is left to the operator", async () => {
  for (const { id } of await cinder.attachments({ volumeId: replacedBy })) await cinder.deleteAttachment(id);
  await cinder.endMigration({ volumeId, targetId: replacedBy, hasFailed: true });
  expect(find(replacedBy)).toBeUndefined();
  expect(await end("complete")).toMatchObject({ kind: "failed" });
  expect(await attached(volumeId)).toBe(1);
});

test("a silent Cinder, and a conductor without one, are named, and other volumes need nothing", async () => {
  const replacements = conductor(null);
  expect(await tell("leave", { replacements })).toMatchObject({
    reason: expect.stringContaining("set BERTH_VOLUMES=cinder"),
  });
  expect(tell("leave", { replacements, inCinder: false })).toBeNull();
  cinder.fate = () => "silent";
  expect(await end("complete")).toMatchObject({ reason: expect.stringContaining("Cinder does not answer") });
});

/** How often Cinder is asked to end a migration from now on. */
function countEnds(): () => number {
  let asked = 0;
  const { fate } = cinder;
  cinder.fate = (method) => {
    if (method === "endMigration") asked += 1;
    return fate(method);
  };
  return () => asked;
}

test.each(["the conductor that asked for it", "another conductor"])(
  "a completion that Cinder still carries out is not asked for a second time by %s",
  async (who) => {
    cinder.fate = (method) => (method === "endMigration" ? "slow" : "answered");
    const asked = countEnds();
    expect(await end("complete")).toMatchObject({ kind: "failed" });
    const next = who === "another conductor" ? conductor(cinder) : first;
    for (let time = 0; time < 2; time += 1) {
      expect(await end("complete", next)).toMatchObject({ reason: expect.stringContaining("still completes") });
      clock.advance(100_000);
    }
    expect(asked()).toBe(1);
    cinder.finishSlow();
    expect(await end("complete", next)).toEqual({ kind: "ended" });
    expect([asked(), find(replacedBy), await attached(volumeId)]).toEqual([1, undefined, 1]);
  },
);

test("the attachment that the guest uses stays when an earlier completion ends while Cinder is asked about it", async () => {
  let isFirst = true;
  const list = cinder.attachments.bind(cinder);
  cinder.attachments = async (filter) => {
    if (isFirst) await cinder.endMigration({ volumeId, targetId: replacedBy, hasFailed: false });
    isFirst = false;
    return list(filter);
  };
  expect(await end("complete")).toEqual({ kind: "ended" });
  expect(await attached(volumeId)).toBe(1);
});

test("a completion whose answer was lost before Cinder began it is asked for again after a pause", async () => {
  cinder.fate = (method) => (method === "endMigration" ? "silent" : "answered");
  const asked = countEnds();
  for (let time = 0; time < 2; time += 1) expect(await end("complete")).toMatchObject({ kind: "failed" });
  clock.advance(74_000);
  expect(await end("complete")).toMatchObject({ reason: expect.stringContaining("asked again in 1 s") });
  expect(asked()).toBe(1);
  clock.advance(1_000);
  cinder.fate = () => "answered";
  expect(await end("complete")).toEqual({ kind: "ended" });
  expect(find(volumeId)?.migrationStatus).toBe("success");
});

test("a conductor that finds no attachment left waits, since another one may just have asked for the completion", async () => {
  for (const { id } of await cinder.attachments({ volumeId })) await cinder.deleteAttachment(id);
  const asked = countEnds();
  expect(await end("complete")).toMatchObject({ kind: "failed" });
  expect(asked()).toBe(0);
  clock.advance(75_000);
  expect([await end("complete"), asked()]).toEqual([{ kind: "ended" }, 1]);
});

test("a conductor that could not end all attachments goes on at once when it can", async () => {
  cinder.fate = (method) => (method === "deleteAttachment" ? "lost" : "answered");
  expect(await end("complete")).toMatchObject({ kind: "failed" });
  cinder.fate = () => "answered";
  expect(await end("complete")).toEqual({ kind: "ended" });
});

test("the other volume is dropped also if Cinder itself says that the migration has failed", async () => {
  cinder.putVolume({ ...find(volumeId)!, migrationStatus: "error" });
  expect(await end("abandon")).toEqual({ kind: "ended" });
  expect([find(replacedBy), await attached(volumeId)]).toEqual([undefined, 1]);
});

test("Cinder is not told again to drop a volume that it deletes already", async () => {
  cinder.putVolume({ ...find(volumeId)!, migrationStatus: "error" });
  cinder.putVolume({ ...find(replacedBy)!, status: "deleting" });
  const asked = countEnds();
  expect([await end("abandon"), asked()]).toEqual([{ kind: "ended" }, 0]);
});

test("a migration that somebody else has completed, while the guest uses its own volume, is left to the operator, who resets its status", async () => {
  await cinder.endMigration({ volumeId, targetId: replacedBy, hasFailed: false });
  expect(find(replacedBy)).toBeUndefined();
  const reason = expect.stringMatching(/has completed the migration of .* deletes what the guest uses.*reset-state/);
  for (let time = 0; time < 2; time += 1) expect(await end("abandon")).toMatchObject({ kind: "failed", reason });
  cinder.putVolume({ ...find(volumeId)!, migrationStatus: "" });
  expect(await end("abandon")).toEqual({ kind: "ended" });
});

test("a migration that has succeeded long before is not taken for the one that is called off", async () => {
  cinder.putVolume({ ...find(volumeId)!, migrationStatus: "success" });
  cinder.putVolume({ ...find(replacedBy)!, migrationStatus: "" });
  expect(await end("abandon")).toEqual({ kind: "ended" });
});
