import { afterEach, beforeEach, expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { claimCellNameAt } from "./claim-cell-name.ts";

let database: TestDatabase;
beforeEach(async () => {
  database = await freshDatabase("cell");
});
afterEach(() => database.drop());

test("one of two cells that claim a database at once gets it, and keeps it", async () => {
  const names = ["c1", "c2"];
  const ends = await Promise.allSettled(names.map((name) => claimCellNameAt(database.url, name)));
  expect(ends.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  const owner = names[ends.findIndex(({ status }) => status === "fulfilled")] ?? "";
  const other = names.find((name) => name !== owner) ?? "";
  await claimCellNameAt(database.url, owner);
  await expect(claimCellNameAt(database.url, other)).rejects.toMatchObject({ code: "other-cell" });
});
