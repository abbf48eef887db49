import { randomUUID } from "node:crypto";
import { beforeEach, expect, test } from "vitest";
import { MemoryBlockStorage } from "../../../../adapters/memory/memory-block-storage.ts";
import type { CinderAttachmentFilter } from "../../../../core/stores/block-storage.ts";
import { ManualClock } from "../../../../runtime/manual-clock.ts";
import { AttachmentSweeper } from "./attachment-sweeper.ts";

const OWN = { callerToken: null, requestId: null };
const SERVER = randomUUID();
type Filter = CinderAttachmentFilter;

/** Cinder, which gives at most so many attachments at a time, and remembers which pages it was asked for. */
class SmallCinder extends MemoryBlockStorage {
  limitMax = Number.POSITIVE_INFINITY;
  readonly markers: (string | null | undefined)[] = [];

  override attachments(filter: Filter) {
    if (filter.limit !== undefined) this.markers.push(filter.after);
    const limit = Math.min(filter.limit ?? this.limitMax, this.limitMax);
    return super.attachments({ ...filter, limit });
  }
}

let cinder: SmallCinder;
/** The servers that Berth knows. */
let known: Set<string>;
/** What their cell says of each of them, and what it says of the volume that the API database names. */
let server: {
  status: string;
  host: string | null;
  taskState: string | null;
  volumes: readonly string[];
  replacedBy: string;
};
let named: { volumeId: string; attachmentId: string } | null;
let unknown: string[];
let asked: number;
let clock: ManualClock;
beforeEach(() => {
  clock = new ManualClock(0);
  cinder = new SmallCinder({ newId: randomUUID });
  known = new Set([SERVER]);
  server = { status: "ACTIVE", host: "host-1", taskState: null, volumes: [], replacedBy: "" };
  [named, unknown, asked] = [null, [], 0];
});

const sweeper = (patienceMs = 0) => {
  const cell = {
    servers: async () => [
      { ...server, spec: { volumes: server.volumes.map((volumeId) => ({ volumeId, replacedBy: server.replacedBy })) } },
    ],
    guestsLeft: async () => [false],
  };
  const row = () => ({
    id: named?.volumeId,
    attachment: { serverUuid: SERVER, attachmentId: named?.attachmentId, phase: "attached" },
  });
  const operations = async (ask: (store: object) => Promise<unknown>) => ({ kind: "answer", value: await ask(cell) });
  const store = {
    requests: async (uuids: readonly string[]) => {
      asked += 1;
      return uuids.filter((uuid) => known.has(uuid)).map((serverUuid) => ({ serverUuid, cell: "north" }));
    },
  };
  const volumes = {
    volumes: async (ids: readonly string[]) => (named !== null && ids.includes(named.volumeId) ? [row()] : []),
    setAttachmentId: async (_: string, { attachmentId }: { attachmentId: string }) => {
      if (named !== null) named = { ...named, attachmentId };
      return true;
    },
  };
  const events = { attachmentUnknown: (pair: { volumeId: string }) => unknown.push(pair.volumeId) };
  return new AttachmentSweeper(
    {
      ...{ storage: cinder, clock, store: store as never, volumes: volumes as never },
      ...{ cells: new Map([["north", { operations }]]) as never, events: events as never },
    },
    { pollMs: 1_000, patienceMs },
  );
};
async function attachment(serverUuid: string, values: { volumeId?: string; host?: string } = {}) {
  const { volumeId = cinder.putVolume({ projectId: "one" }).id, host = null } = values;
  const connector = host === null ? null : { host, initiator: "iqn" };
  const kept = await cinder.reserve({ volumeId, serverUuid, connector }, OWN);
  if (kept.kind !== "reserved") throw new Error(kept.kind);
  if (host !== null) await cinder.complete(kept.attachment.id);
  return kept.attachment;
}
const left = async () => {
  const ids = new Set<string>();
  for (const { id } of cinder.all()) for (const one of await cinder.attachments({ volumeId: id })) ids.add(one.id);
  return ids;
};

test("a round whose page followed an attachment that has ended begins at the first page", async () => {
  cinder.limitMax = 1;
  const [first, other] = [await attachment(randomUUID()), await attachment(randomUUID())];
  const sweep = sweeper();
  await sweep.sweep();
  await cinder.deleteAttachment(first.id);
  await sweep.sweep();
  await sweep.sweep();
  expect(cinder.markers).toEqual([null, first.id, null, other.id, null]);
});

test("a round asks again for a page that Cinder did not give, and begins at the first page after five failures", async () => {
  cinder.limitMax = 1;
  const [first, other] = [await attachment(randomUUID()), await attachment(randomUUID())];
  const sweep = sweeper();
  await sweep.sweep();
  const fail = async (times: number) => {
    cinder.fate = () => "silent";
    for (let left = times; left > 0; left -= 1)
      await expect(sweep.sweep()).rejects.toMatchObject({ code: "unreachable" });
    cinder.fate = () => "answered";
  };
  await fail(4);
  await sweep.sweep();
  await fail(4);
  await fail(1);
  await sweep.sweep();
  expect(cinder.markers).toEqual([null, ...Array(5).fill(first.id), ...Array(5).fill(other.id), null]);
});

test("all attachments are looked at where Cinder gives fewer at a time than it is asked for", async () => {
  cinder.limitMax = 2;
  for (let at = 0; at < 4; at += 1) await attachment(randomUUID());
  const orphan = await attachment(SERVER);
  const sweep = sweeper();
  for (let round = 0; round < 3; round += 1) await sweep.sweep();
  expect((await left()).has(orphan.id)).toBe(false);
});

test("attachments of servers that Berth does not know take no turn from others, and are asked about at once", async () => {
  const foreign = [];
  for (let at = 0; at < 120; at += 1) foreign.push((await attachment(randomUUID())).id);
  await attachment(SERVER);
  await sweeper().sweep();
  expect([await left(), asked]).toEqual([new Set(foreign), 2]);
});

test("attachments beyond those that one round looks into have their turn in the next ones, also after a failure", async () => {
  // These stay, since their server has the volumes.
  for (let at = 0; at < 120; at += 1) await attachment(SERVER);
  const all = cinder.all().map(({ id }) => id);
  server = { ...server, volumes: all };
  const sweep = sweeper();
  for (let round = 0; round < 3; round += 1) await sweep.sweep();
  expect(unknown.toSorted()).toEqual(all.toSorted());
  unknown = [];
  let calls = 0;
  cinder.fate = () => {
    calls += 1;
    // The empty page and the first one are answered; the first question about a pair is not.
    return calls === 3 ? "silent" : "answered";
  };
  await expect(sweep.sweep()).rejects.toMatchObject({ code: "unreachable" });
  for (let round = 0; round < 3; round += 1) await sweep.sweep();
  expect(new Set(unknown).size).toBe(119);
});

test("the attachment of a host that the server has left ends", async () => {
  const old = await attachment(SERVER, { host: "host-0" });
  const home = await attachment(SERVER, { volumeId: old.volumeId, host: "host-1" });
  named = { volumeId: old.volumeId, attachmentId: old.id };
  server = { ...server, volumes: [old.volumeId] };
  await sweeper().sweep();
  expect([await left(), named.attachmentId]).toEqual([new Set([home.id]), home.id]);
});

test("no attachment of the host on which the server rests ends, also if two conductors have both made one", async () => {
  const first = await attachment(SERVER, { host: "host-1" });
  const { volumeId } = first;
  const second = await attachment(SERVER, { volumeId, host: "host-1" });
  await attachment(SERVER, { volumeId, host: "host-0" });
  named = { volumeId, attachmentId: first.id };
  server = { ...server, volumes: [volumeId] };
  await sweeper().sweep();
  expect(await left()).toEqual(new Set([first.id, second.id]));
  server = { ...server, host: "host-2" };
  const home = await attachment(SERVER, { volumeId, host: "host-2" });
  await sweeper().sweep();
  expect(await left()).toEqual(new Set([home.id]));
});

test("an attachment that a slow driver has set back after it was finished is finished again, unless a move begins", async () => {
  const { id: volumeId } = cinder.putVolume({ projectId: "one" });
  const kept = await cinder.reserve({ volumeId, serverUuid: SERVER, connector: null }, OWN);
  if (kept.kind !== "reserved") throw new Error(kept.kind);
  const { id } = kept.attachment;
  const connector = { host: "host-1", initiator: "iqn" };
  cinder.fate = () => "slow";
  await cinder.connect(id, connector).catch(() => {});
  cinder.fate = () => "answered";
  await cinder.connect(id, connector);
  await cinder.complete(id);
  cinder.finishSlow();
  named = { volumeId, attachmentId: id };
  const hosts = () => cinder.all().flatMap(({ attachedTo }) => attachedTo.map(({ host }) => host));
  server = { ...server, volumes: [volumeId], taskState: "migrating" };
  await sweeper().sweep();
  expect(hosts()).toEqual([]);
  server = { ...server, taskState: null };
  await sweeper().sweep();
  expect(hosts()).toEqual(["host-1"]);
});

test.each([
  ["a move begins", { taskState: "resize_prep" }],
  ["the server has moved", { host: "host-2" }],
  ["the server waits to be confirmed", { status: "VERIFY_RESIZE" }],
])("no attachment of another host ends if %s while the sweep asks Cinder", async (_, change) => {
  const old = await attachment(SERVER, { host: "host-0" });
  const home = await attachment(SERVER, { volumeId: old.volumeId, host: "host-1" });
  named = { volumeId: old.volumeId, attachmentId: home.id };
  server = { ...server, volumes: [old.volumeId] };
  const third = await attachment(SERVER, { volumeId: old.volumeId, host: "host-2" });
  cinder.fate = (method) => {
    if (method === "volume") server = { ...server, ...change };
    return "answered";
  };
  await sweeper().sweep();
  expect(await left()).toEqual(new Set([old.id, home.id, third.id]));
});

test("an attachment that a move takes while the sweep ends another one stays", async () => {
  const old = await attachment(SERVER, { host: "host-0" });
  const { volumeId } = old;
  const home = await attachment(SERVER, { volumeId, host: "host-1" });
  const third = await attachment(SERVER, { volumeId, host: "host-2" });
  named = { volumeId, attachmentId: home.id };
  server = { ...server, volumes: [volumeId] };
  cinder.fate = (method) => {
    if (method === "deleteAttachment") server = { ...server, taskState: "migrating" };
    return "answered";
  };
  await sweeper().sweep();
  expect(await left()).toEqual(new Set([home.id, third.id]));
});

test("attachments of a volume that the server does not have stay if it gets the volume while the sweep ends one of them", async () => {
  const one = await attachment(SERVER, { host: "host-0" });
  const { volumeId } = one;
  const other = await attachment(SERVER, { volumeId, host: "host-1" });
  cinder.fate = (method) => {
    if (method === "deleteAttachment") server = { ...server, volumes: [volumeId] };
    return "answered";
  };
  await sweeper().sweep();
  expect(await left()).toEqual(new Set([other.id]));
});

test("an attachment that a call has just reserved stays, since its operation may only now begin", async () => {
  const own = await attachment(SERVER, { host: "host-1" });
  const other = await attachment(SERVER);
  named = { volumeId: own.volumeId, attachmentId: own.id };
  server = { ...server, volumes: [own.volumeId] };
  const sweep = sweeper(60_000);
  for (let round = 0; round < 6; round += 1) {
    await sweep.sweep();
    expect(await left()).toEqual(new Set([own.id, other.id]));
    clock.advance(10_000);
  }
  await sweep.sweep();
  expect(await left()).toEqual(new Set([own.id]));
});

test("the attachment of a volume stays that the guest may use in the place of its own", async () => {
  const own = await attachment(SERVER, { host: "host-1" });
  const other = await attachment(SERVER, { host: "host-1" });
  named = { volumeId: own.volumeId, attachmentId: own.id };
  server = { ...server, status: "ERROR", volumes: [own.volumeId], replacedBy: other.volumeId };
  await sweeper().sweep();
  expect(await left()).toEqual(new Set([own.id, other.id]));
});

test("an attachment stays that Cinder gives to the server's own volume while the sweep asks about the other one", async () => {
  const own = await attachment(SERVER, { host: "host-1" });
  const { id: otherId } = cinder.startMigration(own.volumeId);
  const other = await attachment(SERVER, { volumeId: otherId, host: "host-1" });
  named = { volumeId: own.volumeId, attachmentId: own.id };
  server = { ...server, volumes: [own.volumeId] };
  const list = cinder.attachments.bind(cinder);
  let isFirst = true;
  cinder.attachments = async (filter) => {
    const found = await list(filter);
    if (filter.volumeId === otherId && isFirst) {
      isFirst = false;
      await cinder.endMigration({ volumeId: own.volumeId, targetId: otherId, hasFailed: false });
    }
    return found;
  };
  await sweeper().sweep();
  expect([isFirst, await left()]).toEqual([false, new Set([other.id])]);
});

test("keeps the attachment of a volume that Cinder fills with an image, until Cinder has done so", async () => {
  const { id, volumeId } = await attachment(SERVER);
  cinder.holdsReimages = true;
  await cinder.reimage({ volumeId, imageId: randomUUID() });
  [server.status, server.host] = ["DELETED", null];
  await sweeper().sweep();
  expect([await left(), cinder.fills.disturbances]).toEqual([new Set([id]), []]);
  cinder.fills.finish(true);
  await sweeper().sweep();
  expect(await left()).toEqual(new Set());
});
