import { expect, test } from "vitest";
import { PrimaryFinder } from "./primary-finder.ts";

const ONE = "postgres://one/db";
const TWO = "postgres://two/db";

/** Servers that answer with the values of `says`: a timeline, null for a standby, or an error. */
function finderOf(says: Record<string, number | null | Error>) {
  const asked: string[] = [];
  const finder = new PrimaryFinder([ONE, TWO], async (url) => {
    asked.push(url);
    const answer = says[url] ?? null;
    if (answer instanceof Error) throw answer;
    return answer;
  });
  return { finder, asked, says };
}

test("takes the server that can be written to, and does not ask again while it is trusted", async () => {
  const { finder, asked } = finderOf({ [ONE]: null, [TWO]: 1 });
  expect((await finder.find()).url).toBe(TWO);
  await finder.find();
  expect(asked).toEqual([ONE, TWO]);
});

test("concurrent callers share one question", async () => {
  const { finder, asked } = finderOf({ [ONE]: 1, [TWO]: null });
  await Promise.all([finder.find(), finder.find(), finder.find()]);
  expect(asked).toEqual([ONE, TWO]);
});

test("looks again when the primary is lost, and follows a promotion", async () => {
  const { finder, says } = finderOf({ [ONE]: 1, [TWO]: null });
  const first = await finder.find();
  says[ONE] = new Error("connection refused");
  finder.distrust(first);
  await expect(finder.find()).rejects.toMatchObject({
    code: "57P03",
    message: expect.stringMatching(/one: connection refused; two: a standby/),
  });
  says[TWO] = 2;
  expect(await finder.find()).toEqual({ url: TWO, timeline: 2 });
  // A late report about the old primary says nothing about the new one.
  finder.distrust(first);
  says[TWO] = new Error("not asked");
  expect((await finder.find()).url).toBe(TWO);
});

test("of two servers that can be written to, the one promoted last counts, and a replaced primary never counts again", async () => {
  const { finder, says } = finderOf({ [ONE]: 1, [TWO]: 2 });
  const second = await finder.find();
  expect(second.url).toBe(TWO);
  says[TWO] = new Error("connection refused");
  finder.distrust(second);
  await expect(finder.find()).rejects.toThrow(/a primary of timeline 1, which was replaced/);
});

test("cuts the connections to a primary that was replaced, and no others", async () => {
  const { finder, says } = finderOf({ [ONE]: 1, [TWO]: null });
  const first = await finder.find();
  const cut: string[] = [];
  finder.cutWhenReplaced(first, () => cut.push("first"));
  finder.cutWhenReplaced(first, () => cut.push("ended by itself"))();
  finder.suspect(first);
  expect(await finder.find()).toEqual(first);
  expect(cut).toEqual([]);
  says[TWO] = 2;
  finder.suspect(first);
  const second = await finder.find();
  finder.cutWhenReplaced(second, () => cut.push("second"));
  finder.suspect(second);
  await finder.find();
  expect(cut).toEqual(["first"]);
});
