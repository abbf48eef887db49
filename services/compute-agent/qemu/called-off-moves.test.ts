import { beforeEach, expect, test } from "vitest";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { guestRecord } from "../../../test/rigs/guest-record.ts";
import { CalledOffMoves } from "./called-off-moves.ts";

const NAME = { host: "h", serverUuid: "s", attemptId: "t1/0" };

let clock: ManualClock;
let moves: CalledOffMoves;
let record: ReturnType<typeof guestRecord>;
let isSilent: boolean;
/** When the end of the move was tried, in milliseconds. */
let tries: number[];
/** A guest that QEMU has halted before the switch-over of its move. */
let guest: QemuGuest;

beforeEach(() => {
  clock = new ManualClock();
  record = guestRecord({ hasRun: true, handedTo: { attemptId: "t2/0", isDone: false, wasRunning: true } });
  isSilent = true;
  tries = [];
  let state = "finish-migrate";
  guest = {
    record,
    state: async () => state,
    execute: async (command: string) => {
      if (command === "query-block-jobs") tries.push(clock.monotonic());
      if (isSilent) throw new Error("QEMU is silent");
      if (command === "migrate_cancel") state = "running";
      if (command === "query-migrate") return { status: state === "running" ? "cancelled" : "pre-switchover" };
      return [];
    },
    change: async (changes: object) => void Object.assign(record, changes),
  } as unknown as QemuGuest;
  moves = new CalledOffMoves(clock, () => moves.end(NAME, guest));
});

async function pass(seconds: number): Promise<void> {
  for (let halfs = 0; halfs < 2 * seconds; halfs += 1) {
    clock.advance(500);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("a move that cannot be ended is tried again at growing intervals, without an order, until it has ended", async () => {
  moves.add(NAME, "t2/0", { isWhole: true });
  await pass(100);
  expect(tries).toEqual([500, 5_500, 15_500, 35_500, 65_500, 95_500]);
  isSilent = false;
  await pass(30);
  expect([record.handedTo, clock.pending]).toEqual([null, 0]);
});

test("a move that an order could not end is tried again, too", async () => {
  moves.add(NAME, "t2/0", { isWhole: true });
  await expect(moves.end(NAME, guest)).rejects.toThrow("silent");
  isSilent = false;
  await pass(5);
  expect([record.handedTo, clock.pending]).toEqual([null, 0]);
});

test("a move whose guest cannot be found is tried again", async () => {
  let looks = 0;
  const lost: CalledOffMoves = new CalledOffMoves(clock, async () => {
    looks += 1;
    throw new Error("the guest's record cannot be read");
  });
  lost.add(NAME, "t2/0", { isWhole: true });
  await pass(20);
  expect(looks).toBe(3);
  lost.close();
});

test("a move that nobody has tried to end is taken up by its forced form, and not ended", async () => {
  moves.add(NAME, "t2/0", { isWhole: true });
  expect([moves.takeUp(NAME, "t3/0"), moves.takeUp(NAME, "t2/0")]).toEqual([false, true]);
  await pass(60);
  expect(tries).toEqual([]);
});

test.each([
  ["a timer", () => pass(1)],
  ["an order", () => expect(moves.end(NAME, guest)).rejects.toThrow("silent")],
])("a move that %s could not end is not taken up, since the copying of its disks may have ended", async (_, end) => {
  moves.add(NAME, "t2/0", { isWhole: true });
  await end();
  expect(moves.takeUp(NAME, "t2/0")).toBe(false);
  isSilent = false;
  await pass(30);
  expect([record.handedTo, clock.pending]).toEqual([null, 0]);
});

test("a move of the agent's last process is not taken up, since that may have tried to end it", async () => {
  moves.add(NAME, "t2/0", { isWhole: false });
  expect(moves.takeUp(NAME, "t2/0")).toBe(false);
});

test.each([
  ["is forgotten with its guest", () => moves.forget(NAME)],
  ["is left to the next process", () => moves.close()],
])("a move that could not be ended and %s is not tried again", async (_, leave) => {
  moves.add(NAME, "t2/0", { isWhole: true });
  await pass(1);
  leave();
  await pass(60);
  expect([tries, clock.pending]).toEqual([[500], 0]);
});
