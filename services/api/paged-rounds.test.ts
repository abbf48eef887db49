import { expect, test } from "vitest";
import { PagedRounds } from "./paged-rounds.ts";

const rowsOf = (count: number) => Array.from({ length: count }, (_, at) => ({ id: String(at).padStart(5, "0") }));

function roundsOver(rows: readonly { readonly id: string }[]) {
  return new PagedRounds(async (after, limit) => rows.filter(({ id }) => after === null || id > after).slice(0, limit));
}

async function seenIn(rounds: ReturnType<typeof roundsOver>): Promise<readonly string[]> {
  const seen: string[] = [];
  await rounds.run(async (page) => void seen.push(...page.map(({ id }) => id)));
  return seen;
}

test("works on every row of a short list in each round", async () => {
  const rows = rowsOf(250);
  const rounds = roundsOver(rows);
  for (let round = 0; round < 2; round++) expect(await seenIn(rounds)).toEqual(rows.map(({ id }) => id));
});

test("continues a long list in the next round, and then begins again", async () => {
  const rows = rowsOf(1_100);
  const rounds = roundsOver(rows);
  expect(await seenIn(rounds)).toHaveLength(1_000);
  expect(await seenIn(rounds)).toEqual(rows.slice(1_000).map(({ id }) => id));
  expect((await seenIn(rounds))[0]).toBe("00000");
});

test("reads a page again whose work failed", async () => {
  const rounds = roundsOver(rowsOf(150));
  let pages = 0;
  const failing = rounds.run(async () => {
    pages += 1;
    if (pages === 2) throw new Error("the database is away");
  });
  await expect(failing).rejects.toThrow("the database is away");
  expect(await seenIn(rounds)).toEqual(
    rowsOf(150)
      .slice(100)
      .map(({ id }) => id),
  );
});

test("rows whose work fails keep no others, and are tried again", async () => {
  const left = new Set(rowsOf(230).map(({ id }) => id));
  const rounds = new PagedRounds(async (after, limit) =>
    [...left]
      .filter((id) => after === null || id > after)
      .slice(0, limit)
      .map((id) => ({ id })),
  );
  let tried: string[] = [];
  let isStuck = (id: string) => id < "00007";
  const work = async ({ id }: { readonly id: string }) => {
    tried.push(id);
    if (isStuck(id)) throw new Error(`no ${id}`);
    left.delete(id);
  };
  const round = () => rounds.runEach("rows were not removed", async () => work);
  await expect(round()).rejects.toThrow(/^5 rows were not removed$/);
  expect(tried).toEqual(["00000", "00001", "00002", "00003", "00004"]);
  await expect(round()).rejects.toThrow(/^2 rows were not removed$/);
  expect([...left]).toEqual(rowsOf(7).map(({ id }) => id));
  [tried, isStuck] = [[], () => false];
  await round();
  expect([tried.length, left.size]).toEqual([7, 0]);
});

test("reads a page again whose rows could not be looked up", async () => {
  const rounds = roundsOver(rowsOf(3));
  await expect(rounds.runEach("rows", () => Promise.reject(new Error("the database is away")))).rejects.toThrow("away");
  expect(await seenIn(rounds)).toHaveLength(3);
});
