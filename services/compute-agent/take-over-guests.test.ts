import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { noTracing } from "../../adapters/telemetry/tracing.ts";
import { ServerVolume } from "../../proto/gen/berth/shared.ts";
import { createLogger } from "../../runtime/logger.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import type { HostedGuest } from "./driver.ts";
import { AgentEvents } from "./events.ts";
import { GuestStore } from "./guest-store.ts";
import type { JournalRecord } from "./journal.ts";
import { createMemoryJournal } from "./memory-journal.ts";
import { takeOverGuests } from "./take-over-guests.ts";

const HOST = "h";
const COMPARED: JournalRecord = { kind: "compared", host: HOST, incarnation: "i", cell: "c" };
const nameOf = (at: number) => ({ host: HOST, serverUuid: `s${at}`, attemptId: `t${at}/0` });
const hosted = (at: number, more: Partial<HostedGuest> = {}): HostedGuest => ({
  ...{ ...nameOf(at), stage: "has-run", volumeIds: [], ...more },
});
const recorded = (at: number, more: object = {}): JournalRecord => ({
  ...{ kind: "guest", ...nameOf(at), state: "running", atMs: 1, revision: 4, ...more },
});

type Listed = () => Promise<readonly HostedGuest[]>;

/** An agent's start on this journal. `crashAfter` records can be written before the agent's process ends. */
async function started(records: JournalRecord[], list: Listed, crashAfter = Number.POSITIVE_INFINITY) {
  const lines: Record<string, unknown>[] = [];
  const stream = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const registry = new Registry();
  const logger = createLogger({ name: "test", level: "info", stream });
  const events = new AgentEvents({ logger, registry, tracing: noTracing, fail: () => {}, guestCount: () => 0 });
  const [clock, closing, disk] = [new ManualClock(), new AbortController(), { records }];
  const journal = createMemoryJournal(disk);
  let left = crashAfter;
  const append: typeof journal.append = (record) => {
    left -= 1;
    return left < 0 ? Promise.reject(new Error("killed")) : journal.append(record);
  };
  const store = await GuestStore.open({ ...journal, append, compact: async () => {} }, clock);
  const asked: unknown[] = [];
  const driver = {
    hostedGuests: (...question: unknown[]) => {
      asked.push(question);
      return list();
    },
  };
  const over = takeOverGuests({ store, driver, hosts: [HOST], clock, events, signal: closing.signal });
  return { over, store, disk, clock, closing, lines, asked, registry };
}

/** The guests that the agent knows afterwards. */
async function after(records: JournalRecord[], ...guests: readonly HostedGuest[]) {
  const { over, store, lines } = await started(records, async () => guests);
  await over;
  return { guests: store.all(), lines };
}

test("a lost journal gets the driver's guests: one that has run counts as running until its state is looked at, and a prepared one waits where it waited", async () => {
  const { guests, lines } = await after(
    [],
    hosted(1, { volumeIds: ["v"] }),
    hosted(2, { stage: "prepared", listensAt: "there" }),
    hosted(3, { stage: "half-built" }),
  );
  expect(guests).toMatchObject([
    { ...nameOf(1), state: "running", volumes: [{ volumeId: "v" }] },
    { ...nameOf(2), state: "prepared", listensAt: "there" },
    { ...nameOf(3), state: "building" },
  ]);
  expect(guests.map((guest) => "revision" in guest && guest.revision)).toEqual([undefined, undefined, undefined]);
  expect(guests.map((guest) => "isFound" in guest && guest.isFound)).toEqual([true, true, true]);
  expect(lines).toMatchObject([{ level: "warn", count: 3, servers: ["s1", "s2", "s3"] }]);
});

test("a journal that knows the driver's guests stays as it is, and nothing is said", async () => {
  const volumes = [ServerVolume.fromPartial({ volumeId: "v", file: "f" })];
  const records = [COMPARED, recorded(1, { state: "paused", volumes }), recorded(2, { state: "building" })];
  const { over, disk, lines } = await started([...records], async () => [
    hosted(1, { volumeIds: ["v"] }),
    hosted(2, { stage: "prepared" }),
  ]);
  await over;
  expect([disk.records, lines]).toEqual([records, []]);
});

test("an old copy of the journal destroys nothing: a guest that has run is whole, although it was being built then, and has the driver's volumes", async () => {
  const volumes = [{ volumeId: "left" }, { volumeId: "kept", file: "f" }].map((one) => ServerVolume.fromPartial(one));
  const { guests, lines } = await after(
    [COMPARED, recorded(1, { state: "building" }), recorded(3, { volumes })],
    ...[hosted(1), hosted(3, { volumeIds: ["kept", "new"] })],
  );
  expect(guests).toMatchObject([
    { ...nameOf(1), state: "running", revision: 4 },
    {
      ...nameOf(3),
      state: "running",
      revision: 4,
      volumes: [
        { volumeId: "kept", file: "f" },
        { volumeId: "new", file: "" },
      ],
    },
  ]);
  expect(lines).toEqual([]);
});

test("a guest whose first start may have been broken off stays prepared until it is looked at, also if the agent ends before that", async () => {
  const records = [COMPARED, recorded(1, { state: "prepared" }), recorded(2, { state: "prepared" }), recorded(3)];
  const { over, disk } = await started([...records], async () => [
    ...[hosted(1), hosted(2, { stage: "prepared" }), hosted(3)],
  ]);
  expect(await over).toMatchObject([nameOf(1)]);
  expect(disk.records).toEqual(records);
});

test("what a failed attempt has left is removed, unless it has run", async () => {
  const failed = (at: number): JournalRecord => ({
    ...{ kind: "failed", ...nameOf(at), failure: "reschedule", reason: "no room", atMs: 1 },
  });
  const { guests } = await after([COMPARED, failed(1), failed(2)], hosted(1, { stage: "prepared" }), hosted(2));
  expect(guests).toMatchObject([{ state: "building" }, { state: "running" }]);
});

test("a crash in the middle leaves some guests recorded, and the next start takes over the others", async () => {
  const guests = [1, 2, 3].map((at) => hosted(at));
  const { over, disk } = await started([], async () => guests, 1);
  await expect(over).rejects.toThrow("killed");
  expect(disk.records).toHaveLength(1);
  const next = await started(disk.records, async () => guests);
  await next.over;
  expect(next.store.all().map(({ attemptId }) => attemptId)).toEqual(["t1/0", "t2/0", "t3/0"]);
  expect(next.lines).toMatchObject([{ count: 2 }]);
});

test("an agent that may have lost its journal waits for its driver, whether that fails or is silent, and says why", async () => {
  let answer: Listed = () => Promise.reject(new Error("no socket"));
  const { over, store, clock, asked, lines } = await started([], () => answer());
  await eventually("the first answer", () => lines.length === 1);
  answer = () => new Promise(() => {});
  await clock.advance(1_000);
  await clock.advance(60_000);
  await eventually("the second answer", () => lines.length === 2);
  answer = async () => [hosted(1)];
  await clock.advance(15_000);
  await over;
  expect([store.all().length, asked.length]).toEqual([1, 3]);
  expect(lines).toMatchObject([
    { level: "error", reason: "no socket" },
    { level: "error", reason: expect.stringContaining("took longer than") },
    { level: "warn", count: 1 },
  ]);
});

test("an agent that was compared goes by its journal if its driver is silent, and names its guests to it", async () => {
  const { over, store, clock, asked, lines } = await started([COMPARED, recorded(1)], () => new Promise(() => {}));
  await clock.advance(3_000);
  await over;
  expect(store.all()).toMatchObject([{ ...nameOf(1), state: "running" }]);
  expect(asked).toEqual([[new Set([HOST]), [nameOf(1)]]]);
  expect(lines).toMatchObject([{ level: "warn", msg: expect.stringContaining("goes by its journal") }]);
});

test.each(["while the driver is silent", "between two questions"])(
  "an agent that is closed %s does not wait",
  async (when) => {
    const list: Listed =
      when === "between two questions" ? () => Promise.reject(new Error("no")) : () => new Promise(() => {});
    const { over, closing, lines, clock } = await started([], list);
    if (when === "between two questions") await eventually("the answer", () => lines.length === 1);
    closing.abort(new Error("closed"));
    await expect(over).rejects.toThrow("closed");
    await clock.advance(60_000);
    expect(clock.pending).toBe(0);
  },
);
