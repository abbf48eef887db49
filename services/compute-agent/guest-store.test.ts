import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Clock } from "../../runtime/clock.ts";
import { VirtualClock } from "../../sim/virtual-clock.ts";
import { FileJournal } from "./file-journal.ts";
import { GuestStore } from "./guest-store.ts";
import type { GuestName, Journal } from "./journal.ts";
import { createMemoryJournal, type MemoryDisk } from "./memory-journal.ts";

const HOUR_MS = 3_600_000;
const NAME: GuestName = { host: "h", serverUuid: "s", attemptId: "t/0" };

test("a destroyed guest stays known when the wall clock jumps, at a restart or later", async () => {
  const disk: MemoryDisk = { records: [] };
  const first = await GuestStore.open(createMemoryJournal(disk), new VirtualClock(0));
  await first.record({ kind: "tombstone", ...NAME, atMs: 0 });
  const world = new VirtualClock(0);
  let wallMs = 100 * HOUR_MS;
  const clock: Clock = {
    now: () => wallMs,
    monotonic: () => world.monotonic(),
    setTimer: (delayMs, run) => world.setTimer(delayMs, run),
  };
  expect((await GuestStore.open(createMemoryJournal(disk), clock)).isBuried(NAME)).toBe(true);
  wallMs += 100 * HOUR_MS;
  expect((await GuestStore.open(createMemoryJournal(disk), clock)).isBuried(NAME)).toBe(true);
});

test("a journal whose disk has no room for a compaction is compacted again only when it has grown to twice its length", async () => {
  let length = 0;
  const tried: number[] = [];
  const full: Journal = {
    load: async () => [],
    append: async () => {
      length += 1;
    },
    compact: async (survivors) => {
      survivors();
      tried.push(length);
    },
    get length() {
      return length;
    },
    close: async () => undefined,
  };
  const store = await GuestStore.open(full, new VirtualClock(0));
  for (let index = 0; index < 90_000; index += 1) await store.record({ kind: "gone", ...NAME });
  expect(tried).toEqual([0, 20_001, 40_003, 80_007]);
});

test("a guest that was found is still known as such after restarts, until it obeys an order, if only the first start of its build", async () => {
  const dir = mkdtempSync(join(tmpdir(), "berth-store-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const guest = { kind: "guest", ...NAME, atMs: 0 } as const;
  /** Records this in a process of its own. The next process reads what is on the disk, and rewrites it. */
  const afterRecording = async (record: Parameters<GuestStore["record"]>[0]) => {
    const open = () => GuestStore.open(new FileJournal(join(dir, "agent.journal")), new VirtualClock(0));
    const store = await open();
    await store.record(record);
    await store.close();
    const next = await open();
    await next.close();
    return next.guest(NAME.host, NAME.attemptId);
  };
  expect(await afterRecording({ ...guest, state: "prepared", isFound: true })).toMatchObject({ isFound: true });
  expect(await afterRecording({ ...guest, state: "stopped" })).toMatchObject({ state: "stopped", isFound: true });
  const started = await afterRecording({ ...guest, state: "running", revision: 0 });
  expect(started).toMatchObject({ state: "running" });
  expect(started).not.toHaveProperty("isFound");
});
