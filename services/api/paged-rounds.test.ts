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
