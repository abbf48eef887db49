import { randomUUID } from "node:crypto";
import { beforeEach, expect, test } from "vitest";
import { MemoryApiStore } from "../../../../adapters/memory/api/memory-api-store.ts";
import { MemoryVolumeStore } from "../../../../adapters/memory/api/memory-volume-store.ts";
import { MemoryBlockStorage } from "../../../../adapters/memory/memory-block-storage.ts";
import { ManualClock } from "../../../../runtime/manual-clock.ts";
import { serverSpec } from "../../../../test/contract/cell-fixtures.ts";
import { newAttachmentRow, newVolumeRow } from "../../../../test/contract/volume-store.contract.ts";
import { CinderServerVolumes } from "./cinder-server-volumes.ts";
import { VolumeSettler } from "./volume-settler.ts";

const OWN = { callerToken: null, requestId: null };
const CONNECTOR = { host: "host-1", initiator: "iqn" };

let clock: ManualClock;
let cinder: MemoryBlockStorage;
let store: MemoryVolumeStore;
let requests: MemoryApiStore;
let inDoubt: string[];
/** The stage at which the delete has broken off the replacement. */
let stage: string;
/** Whether the server says that its guest uses the other volume, or that nobody knows it. */
let isInDoubt: boolean;
let server: string;
let volumeId: string;
let targetId: string;

beforeEach(async () => {
  clock = new ManualClock(1_000_000);
  cinder = new MemoryBlockStorage({ newId: randomUUID });
  requests = new MemoryApiStore({ clock });
  store = new MemoryVolumeStore(clock, { requests });
  [inDoubt, stage, isInDoubt] = [[], "completing", true];
});

/** One of several apis, with its settler. */
function api() {
  const volumes = new CinderServerVolumes(
    { store, storage: cinder, events: { volumeStillFilled: () => {} }, clock },
    { sendsTokens: false },
  );
  const operation = { kind: "swap-volume", volume: { volumeId, replacedBy: targetId } };
  const cell = {
    outcomes: async (ids: readonly string[]) => ids.map(() => null),
    servers: async () => [
      {
        ...{ uuid: server, status: "DELETED", launchedAtMs: 1 },
        spec: { volumes: [{ volumeId, replacedBy: isInDoubt ? targetId : "" }] },
      },
    ],
    guestsLeft: async () => [false],
    tasksOf: async () => [{ task: { work: { $case: "operate", value: operation } }, stage, outcome: "cancelled" }],
  };
  const operations = async (ask: (at: object) => Promise<unknown>) => ({ kind: "answer", value: await ask(cell) });
  const events = {
    volumesNotSettled: () => {},
    volumeLeftInDoubt: ({ volume }: { volume: { volumeId: string; replacedBy: string } }, why: string) =>
      inDoubt.push(`${volume.volumeId} ${volume.replacedBy} ${why}`),
  };
  const deps = {
    volumes,
    store: requests as never,
    cells: new Map([["north", { operations }]]) as never,
    events,
    clock,
  };
  return new VolumeSettler(deps, { pollMs: 1_000, settleMs: 60_000 });
}

/** A server whose volume Cinder migrates is deleted. Its guest has used the target, as far as the stage says so. */
async function deleted(values: { readonly deleteOnTermination?: boolean } = {}): Promise<void> {
  server = randomUUID();
  volumeId = cinder.putVolume({ projectId: "one", name: "data" }).id;
  const attach = async (id: string) => {
    const kept = await cinder.reserve({ volumeId: id, serverUuid: server, connector: null }, OWN);
    if (kept.kind !== "reserved") throw new Error(kept.kind);
    await cinder.connect(kept.attachment.id, CONNECTOR);
    await cinder.complete(kept.attachment.id);
    return kept.attachment.id;
  };
  const attachmentId = await attach(volumeId);
  targetId = cinder.startMigration(volumeId).id;
  await attach(targetId);
  await requests.accept([{ ...serverSpec(1), uuid: server }]);
  const row = newVolumeRow({ id: volumeId, projectId: "one", inCinder: true });
  const taskId = randomUUID();
  await store.copyVolume(row);
  await store.reserve(volumeId, newAttachmentRow({ serverUuid: server, attachmentId, taskId, ...values }));
  await store.confirmAttached(volumeId, taskId, 1);
  await requests.cancel(server, "req-1");
  await requests.markDeleted([{ cell: null, serverUuid: server }]);
}

/** Lets an api settle what it can, several times. */
async function settle(settler = api(), rounds = 3): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    clock.advance(80_000);
    await settler.settle();
  }
}
const volumes = () => cinder.all().map(({ id, status }) => [id, status]);
/** The file that has a volume's content. */
async function contentOf(id: string): Promise<unknown> {
  const kept = await cinder.reserve({ volumeId: id, serverUuid: randomUUID(), connector: CONNECTOR }, OWN);
  return kept.kind === "reserved" ? kept.attachment.connection?.name : kept.kind;
}

test("the user gets the volume with what the guest has written last, when the server was deleted before Cinder was told", async () => {
  await deleted();
  await settle();
  expect(volumes()).toEqual([[volumeId, "available"]]);
  expect(await cinder.attachments({})).toEqual([]);
  expect([await contentOf(volumeId), await store.volumes([volumeId]), inDoubt]).toEqual([`volume-${targetId}`, [], []]);
});

test("a volume that is to end with its server ends with both contents", async () => {
  await deleted({ deleteOnTermination: true });
  await settle();
  expect(volumes()).toEqual([]);
});

test("the volume keeps its content when the guest was known to have used it", async () => {
  stage = "calling-off";
  await deleted();
  await settle();
  expect([await contentOf(volumeId), cinder.all()[0]?.migrationStatus]).toEqual([`volume-${volumeId}`, "error"]);
});

test.each(["mirroring", "detaching-kept", "unmirroring", "calling-off"])(
  "Cinder is told that the migration has failed when the server was deleted at %s, before its host was told to change over",
  async (at) => {
    [stage, isInDoubt] = [at, false];
    await deleted();
    await settle();
    expect([await contentOf(volumeId), cinder.all()[0]?.migrationStatus]).toEqual([`volume-${volumeId}`, "error"]);
    expect([await store.volumes([volumeId]), inDoubt]).toEqual([[], []]);
  },
);

test("a volume that is to end with its server ends with the other one when the server was deleted while it was copied", async () => {
  [stage, isInDoubt] = ["mirroring", false];
  await deleted({ deleteOnTermination: true });
  await settle();
  expect(volumes()).toEqual([]);
});

test("both volumes are named in the log when the server was deleted while its host changed over", async () => {
  [stage, isInDoubt] = ["pivoting", false];
  await deleted();
  await settle();
  expect(volumes().map(([id]) => id)).toEqual(expect.arrayContaining([volumeId, targetId]));
  expect(inDoubt).toEqual([`${volumeId} ${targetId} the server was deleted before its host said it`]);
});

test("both volumes stay, and both are named in the log, when nobody knows which one the guest has used", async () => {
  stage = "pivoting";
  await deleted({ deleteOnTermination: true });
  let drops = 0;
  cinder.fate = (method) => {
    if (method === "endMigration") drops += 1;
    return "answered";
  };
  await settle();
  expect([
    drops,
    cinder
      .all()
      .map(({ id }) => id)
      .toSorted(),
  ]).toEqual([0, [volumeId, targetId].toSorted()]);
  expect(inDoubt).toEqual([`${volumeId} ${targetId} the server was deleted before its host said it`]);
});

test("two apis tell Cinder once, also when the first one's question is slow, and the second one goes on when the first has died", async () => {
  await deleted();
  let completions = 0;
  cinder.fate = (method) => {
    if (method !== "endMigration") return "answered";
    completions += 1;
    return "slow";
  };
  const [first, second] = [api(), api()];
  clock.advance(80_000);
  await Promise.all([first.settle(), second.settle()]);
  await settle(second, 4);
  expect([completions, (await store.volumes([volumeId]))[0]?.attachment?.phase]).toEqual([1, "detaching"]);
  cinder.finishSlow();
  cinder.fate = () => "answered";
  await settle(second, 12);
  expect(volumes()).toEqual([[volumeId, "available"]]);
  expect(await contentOf(volumeId)).toBe(`volume-${targetId}`);
});

test("Cinder's refusal is logged with both volumes, and keeps no attachment", async () => {
  await deleted();
  for (const { id } of await cinder.attachments({ volumeId: targetId })) await cinder.deleteAttachment(id);
  await cinder.endMigration({ volumeId, targetId, hasFailed: true });
  await settle();
  expect(inDoubt).toEqual([expect.stringContaining(`${volumeId} ${targetId} Cinder no longer migrates`)]);
  expect(await cinder.attachments({ volumeId })).toEqual([]);
});
