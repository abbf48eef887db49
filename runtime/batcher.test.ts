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
  /** Submits items in one turn, and ends their batch after `meanwhile`. */
  const take = async (items: readonly number[], meanwhile: () => void): Promise<void> => {
    const known = batches.length;
    const answered = items.map((item) => batcher.submit(item));
    await eventuallyInTurns(() => batches.length === known + 1);
    meanwhile();
    batches[known]!.end();
    await Promise.all(answered);
  };
  return { batcher, batches, take };
}

/** Runs the test with timers and a clock that only `advance` moves, by milliseconds. */
async function withHeldTime(run: (advance: (ms: number) => void) => Promise<void>): Promise<void> {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  try {
    await run((ms) => vi.advanceTimersByTime(ms));
  } finally {
    vi.useRealTimers();
  }
}

/** A batch that need not wait starts in one of these turns. Timers cannot be counted instead, since other parts of the process set some, too. */
async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
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

test("while batches are spaced out, items gather in one batch although none is under way", () =>
  withHeldTime(async (advance) => {
    const { batcher, batches, take } = heldBatcher({ maxItems: 3, spacingMs: 60_000, spacingMsMax: 60_000 });
    await take([1], () => advance(1));
    for (const items of [[2], [3, 4]]) await take(items, () => advance(100));
    void batcher.submit(5);
    void batcher.submit(6);
    await someTurns();
    expect(batches).toHaveLength(3);
    void batcher.submit(7);
    await eventuallyInTurns(() => batches.length === 4);
    expect(batches.map((batch) => batch.items)).toEqual([[1], [2], [3, 4], [5, 6, 7]]);
    batches[3]!.end();
  }));

test("batches are not spaced out while the database is calm, whoever calls", () =>
  withHeldTime(async (advance) => {
    const { batches, take } = heldBatcher({ maxItems: 10, spacingMs: 60_000 });
    for (const items of [[1], [2, 3], [4, 5]]) await take(items, () => advance(2));
    expect(batches.map((batch) => batch.items)).toEqual([[1], [2, 3], [4, 5]]);
  }));

test("a caller that makes one call after the other never waits for the spacing, until another one comes meanwhile", () =>
  withHeldTime(async (advance) => {
    const { batcher, batches, take } = heldBatcher({ maxItems: 10, spacingMs: 60_000 });
    await take([1], () => advance(1));
    for (const item of [2, 3]) await take([item], () => advance(40));
    await take([4], () => {
      void batcher.submit(5);
      advance(40);
    });
    await someTurns();
    expect(batches.map((batch) => batch.items)).toEqual([[1], [2], [3], [4]]);
  }));

test("items of a few callers wait for no spacing where each commit is slow, only for the batch that is under way", () =>
  withHeldTime(async (advance) => {
    const { batches, batcher } = heldBatcher({ maxItems: 10, spacingMs: 10 });
    for (let round = 0; round < 40; round += 1) {
      // Two callers, the second of which comes while the first one's commit is under way.
      const first = batcher.submit(1);
      await eventuallyInTurns(() => batches.length === 2 * round + 1);
      const second = batcher.submit(2);
      advance(30);
      batches.at(-1)!.end();
      await first;
      await eventuallyInTurns(() => batches.length === 2 * round + 2);
      advance(30);
      batches.at(-1)!.end();
      await second;
      advance(200);
    }
  }));

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

test("items that were held back for spacing are sent when the spacing is over", () =>
  withHeldTime(async (advance) => {
    const { batcher, batches, take } = heldBatcher({ maxItems: 10, spacingMs: 10 });
    await take([1], () => advance(1));
    for (const items of [[2], [3, 4]]) await take(items, () => advance(30));
    const last = batcher.submit(5);
    await someTurns();
    expect(batches).toHaveLength(3);
    // The third batch began 30 ms ago, and 60 ms is the longest spacing.
    advance(29);
    await someTurns();
    expect(batches).toHaveLength(3);
    advance(1);
    await eventuallyInTurns(() => batches.length === 4);
    batches[3]!.end();
    expect(await last).toBe(10);
  }));

test("items wait for the spacing that holds now, and not for a longer one that held when the wait began", () =>
  withHeldTime(async (advance) => {
    const { batcher, batches, take } = heldBatcher({ maxItems: 2, spacingMs: 10 });
    await take([1], () => advance(1));
    for (let slow = 0; slow < 20; slow += 1) await take([2, 3], () => advance(20));
    // This item would wait until 60 ms after the start of the last batch, but full batches go before that, and are fast.
    const first = batcher.submit(4);
    await someTurns();
    await take([5], () => advance(1));
    await first;
    for (let fast = 0; fast < 3; fast += 1) await take([6, 7], () => advance(1));
    const known = batches.length;
    const last = batcher.submit(8);
    await someTurns();
    expect(batches).toHaveLength(known);
    advance(60);
    await eventuallyInTurns(() => batches.length === known + 1);
    batches[known]!.end();
    await last;
  }));

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

test("the spacing grows with slow batches, but not beyond its bound", () =>
  withHeldTime(async (advance) => {
    const waits = async (bound: { readonly spacingMsMax?: number }) => {
      const { batcher, batches, take } = heldBatcher({ maxItems: 10, spacingMs: 10, ...bound });
      await take([1], () => advance(1));
      for (const items of [[2], [3, 4]]) await take(items, () => advance(30));
      advance(5);
      void batcher.submit(5);
      await someTurns();
      return batches.length === 3;
    };
    expect(await waits({})).toBe(true);
    expect(await waits({ spacingMsMax: 10 })).toBe(false);
  }));

/** Waits turn by turn of the event loop, because the timers are fake. */
async function eventuallyInTurns(condition: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1_000 && !condition(); turn += 1) await new Promise(setImmediate);
  expect(condition()).toBe(true);
}
