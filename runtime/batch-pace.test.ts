import { expect, test } from "vitest";
import { BatchPace } from "./batch-pace.ts";

/** The spacings after batches that took this long, one a second with so many items. */
function spacingsAfter(pace: BatchPace, tookMs: readonly number[], fromMs = 0, items = 1_000): readonly number[] {
  return tookMs.map((took, index) => {
    pace.took(took, fromMs + index * 1_000, items);
    return pace.spacingMsAt(fromMs + index * 1_000);
  });
}

test("batches are not spaced before the first one has ended, nor while they take about as long as the fastest one", () => {
  const pace = new BatchPace(10, 150);
  expect(pace.spacingMsAt(0)).toBe(0);
  expect(spacingsAfter(pace, [1.2, 0.9, 1.5, 2.1, 1.4, 1, 2.6, 1.1])).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
});

test("a database that is far away is as calm as a near one", () => {
  expect(spacingsAfter(new BatchPace(10, 150), [6, 5, 7, 8, 6, 9, 7])).toEqual([0, 0, 0, 0, 0, 0, 0]);
});

test("many slow batches space batches out, up to the bound", () => {
  const pace = new BatchPace(10, 150);
  spacingsAfter(pace, [1, 1, 1, 1, 1, 1]);
  const spacings = spacingsAfter(pace, [8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8], 10_000);
  expect(spacings[0]).toBe(0);
  expect(spacings[1]).toBeGreaterThanOrEqual(10);
  // 10 times what such a batch takes, since that is more than twice what one takes with a calm database.
  expect(spacings.at(-1)).toBeGreaterThan(75);
  expect(spacings.at(-1)).toBeLessThanOrEqual(80);
  expect(spacings).toEqual(spacings.toSorted((one, other) => one - other));
  expect(
    spacingsAfter(
      pace,
      Array.from({ length: 20 }, () => 60),
      22_000,
    ).at(-1),
  ).toBe(150);
});

test("one batch that takes very long, like the first one after a pause or one that meets a checkpoint, does not space out the next ones", () => {
  const pace = new BatchPace(10, 150);
  expect(spacingsAfter(pace, [60, 1, 1, 1, 1])).toEqual([0, 0, 0, 0, 0]);
  expect(spacingsAfter(pace, [200, 1, 1, 200, 1], 5_000)).toEqual([0, 0, 0, 0, 0]);
  expect(spacingsAfter(pace, [60, 1, 1], 60_000)).toEqual([0, 0, 0]);
  expect(spacingsAfter(pace, [60, 60], 120_000)).toEqual([0, 150]);
});

test("with a busy database, slow batches between faster ones keep the spacing", () => {
  const pace = new BatchPace(10, 150);
  spacingsAfter(pace, [1, 1, 1, 20, 20, 20, 20]);
  const spacings = spacingsAfter(pace, [4, 20, 4, 20, 4, 20, 4, 20, 4, 20], 5_000);
  expect(Math.min(...spacings)).toBeGreaterThanOrEqual(50);
});

test("a fast batch is forgotten after two minutes, so that a database which became slower for good counts as calm again", () => {
  const pace = new BatchPace(10, 150);
  spacingsAfter(pace, [1, 1, 1]);
  const spacings = spacingsAfter(
    pace,
    Array.from({ length: 180 }, () => 6),
    3_000,
  );
  expect(spacings[50]).toBeGreaterThan(0);
  expect(spacings.at(-1)).toBe(0);
});

test("a database that is as busy as ever, for which no batch was fast, does not count as calm", () => {
  expect(spacingsAfter(new BatchPace(10, 150), [120, 118, 121, 119, 122])).toEqual([0, 150, 150, 150, 150]);
  const pace = new BatchPace(10, 150);
  spacingsAfter(pace, [1, 1, 1]);
  const grown = Array.from({ length: 300 }, (_, at) => Math.min(50, 2 + at / 6));
  expect(spacingsAfter(pace, grown, 3_000).at(-1)).toBe(150);
});

test("a slow database that has few items to write is calm, however long its commits always take, and under load it is not", () => {
  const commits = Array.from({ length: 100 }, (_, at) => 30 + (at % 3));
  const spacings = (items: number) => {
    const pace = new BatchPace(10, 60);
    return commits.map((took, at) => {
      pace.took(took, at * 50, items);
      return pace.spacingMsAt(at * 50);
    });
  };
  // 20 and 80 items a second, of which 0.6 and 2.4 come while one batch is written.
  expect(Math.max(...spacings(1))).toBe(0);
  expect(spacings(4).at(-1)).toBe(60);
});

test("after a pause, nothing is known of the database any more, and the first batches do not wait for what was", () => {
  const pace = new BatchPace(10, 150);
  spacingsAfter(pace, [1, 1, 60, 60, 60, 60]);
  expect(pace.spacingMsAt(5_000)).toBe(150);
  expect(pace.spacingMsAt(8_000)).toBe(0);
  expect(spacingsAfter(pace, [1.5, 1.2], 8_000)).toEqual([0, 0]);
});
