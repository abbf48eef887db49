import { expect, test } from "vitest";
import { forEachBounded } from "./for-each-bounded.ts";
import { nextTurn } from "./next-turn.ts";

test("works on at most so many items at once, and returns the results in the order of the items", async () => {
  let [running, most] = [0, 0];
  const results = await forEachBounded([5, 1, 4, 2, 3, 0, 6], 3, async (turns) => {
    running += 1;
    most = Math.max(most, running);
    for (let turn = 0; turn <= turns; turn += 1) await nextTurn();
    running -= 1;
    return turns * 10;
  });
  expect(results).toEqual([50, 10, 40, 20, 30, 0, 60]);
  expect(most).toBe(3);
});

test("begins no further call after an error, and rejects with it when the others have ended", async () => {
  const [begun, ended]: [number[], number[]] = [[], []];
  const work = async (item: number) => {
    begun.push(item);
    await nextTurn();
    if (item === 1) throw new Error("item 1");
    await nextTurn();
    ended.push(item);
  };
  await expect(forEachBounded([0, 1, 2, 3, 4, 5], 2, work)).rejects.toThrow("item 1");
  expect([begun, ended]).toEqual([[0, 1], [0]]);
});

test("of no items is done at once", async () => {
  expect(await forEachBounded([], 4, async () => 1)).toEqual([]);
});
