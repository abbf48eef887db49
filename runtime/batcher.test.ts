import { expect, test, vi } from "vitest";
import { eventually } from "../test/rigs/eventually.ts";
import { Batcher, QueueFullError } from "./batcher.ts";

/** A batcher whose batches end when the test says so. */
function heldBatcher(options: {
  readonly maxItems: number;
  readonly concurrency?: number;
  readonly maxQueued?: number;
  readonly spacingMs?: number;
  readonly spacingMsMax?: number;
  readonly besideItemsMin?: number;
}) {
  const batches: { readonly items: readonly number[]; readonly end: () => void }[] = [];
  const batcher = new Batcher<number, number>({
    ...options,
    run: (items) =>
      new Promise((resolve) => batches.push({ items, end: () => resolve(items.map((item) => item * 2)) })),
  });
  return { batcher, batches };
}

test("items submitted in one turn of the event loop share a batch, and items that arrive later go in the next one", async () => {
  const { batcher, batches } = heldBatcher({ maxItems: 10 });
  const first = [batcher.submit(1), batcher.submit(2)];
  await eventually("1 batches", () => batches.length === 1);
  const second = [batcher.submit(3), batcher.submit(4)];
  batches[0]!.end();
  expect(await Promise.all(first)).toEqual([2, 4]);
  await eventually("2 batches", () => batches.length === 2);
  batches[1]!.end();
  expect(await Promise.all(second)).toEqual([6, 8]);
  expect(batches.map((batch) => batch.items)).toEqual([
    [1, 2],
    [3, 4],
  ]);
});

test("while batches are spaced out, items gather in one batch although none is under way", async () => {
  const { batcher, batches } = heldBatcher({ maxItems: 3, spacingMs: 60_000 });
  const first = [batcher.submit(1), batcher.submit(2)];
  await eventually("1 batches", () => batches.length === 1);
  batches[0]!.end();
  await Promise.all(first);
  void batcher.submit(3);
  void batcher.submit(4);
  await new Promise(setImmediate);
  expect(batches).toHaveLength(1);
  void batcher.submit(5);
  await eventually("the full batch", () => batches.length === 2);
  expect(batches.map((batch) => batch.items)).toEqual([
    [1, 2],
    [3, 4, 5],
  ]);
  batches[1]!.end();
});

test("a caller that makes one call after the other never waits for the spacing, until another one comes meanwhile", async () => {
  const { batcher, batches } = heldBatcher({ maxItems: 10, spacingMs: 60_000 });
  for (const [call, item] of [1, 2, 3].entries()) {
    const answered = batcher.submit(item);
    await eventually("its batch", () => batches.length === call + 1);
    batches[call]!.end();
    await answered;
  }
  const fourth = batcher.submit(4);
  await eventually("its batch", () => batches.length === 4);
  void batcher.submit(5);
  batches[3]!.end();
  await fourth;
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  expect(batches.map((batch) => batch.items)).toEqual([[1], [2], [3], [4]]);
});

test("a batch starts beside a running one only when enough items wait; otherwise it starts when that one ends", async () => {
  const { batcher, batches } = heldBatcher({ maxItems: 10, concurrency: 2, besideItemsMin: 2 });
  const first = batcher.submit(1);
  await eventually("1 batches", () => batches.length === 1);
  void batcher.submit(2);
  await new Promise(setImmediate);
  expect(batches).toHaveLength(1);
  void batcher.submit(3);
  await eventually("2 batches", () => batches.length === 2);
  const last = batcher.submit(4);
  for (const { end } of batches) end();
  await first;
  await eventually("3 batches", () => batches.length === 3);
  batches[2]!.end();
  expect(await last).toBe(8);
  expect(batches.map((batch) => batch.items)).toEqual([[1], [2, 3], [4]]);
});

test("items that were held back for spacing are sent when the spacing is over", async () => {
  const { batcher, batches } = heldBatcher({ maxItems: 10, spacingMs: 5 });
  void batcher.submit(1);
  await eventually("1 batches", () => batches.length === 1);
  const second = batcher.submit(2);
  batches[0]!.end();
  await eventually("2 batches", () => batches.length === 2);
  batches[1]!.end();
  expect(await second).toBe(4);
});

test("an item beyond the queue's limit is refused, and the other items are served", async () => {
  const { batcher, batches } = heldBatcher({ maxItems: 1, maxQueued: 1 });
  const served = batcher.submit(1);
  await expect(batcher.submit(2)).rejects.toBeInstanceOf(QueueFullError);
  await eventually("1 batches", () => batches.length === 1);
  batches[0]!.end();
  expect(await served).toBe(2);
});

test("a batch that fails rejects its own items and no others", async () => {
  const batcher = new Batcher<number, number>({
    maxItems: 1,
    run: async ([item]) => {
      if (item === 1) throw new Error("no");
      return [item!];
    },
  });
  const [failed, served] = [batcher.submit(1), batcher.submit(2)];
  await expect(failed).rejects.toThrow("no");
  expect(await served).toBe(2);
});

test("the spacing grows after a slow batch, but not beyond its bound", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  try {
    const waitsAfterSlowBatch = async (bound: { readonly spacingMsMax?: number }) => {
      const { batcher, batches } = heldBatcher({ maxItems: 10, spacingMs: 10, ...bound });
      const first = [batcher.submit(1), batcher.submit(2)];
      await eventuallyInTurns(() => batches.length === 1);
      vi.advanceTimersByTime(12);
      batches[0]!.end();
      await Promise.all(first);
      void batcher.submit(3);
      // A batch that need not wait starts in one of the next turns. Timers cannot be counted instead, since other parts of the process set some, too.
      for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
      const waits = batches.length === 1;
      vi.advanceTimersByTime(150);
      await eventuallyInTurns(() => batches.length === 2);
      return waits;
    };
    expect(await waitsAfterSlowBatch({})).toBe(true);
    expect(await waitsAfterSlowBatch({ spacingMsMax: 10 })).toBe(false);
  } finally {
    vi.useRealTimers();
  }
});

/** Waits turn by turn of the event loop, because the timers are fake. */
async function eventuallyInTurns(condition: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1_000 && !condition(); turn += 1) await new Promise(setImmediate);
  expect(condition()).toBe(true);
}
