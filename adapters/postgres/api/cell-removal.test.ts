import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { cellRemainsIn } from "../cell/cell-remains.ts";
import { withClient } from "../client/databases.ts";
import { claimCellNameAt } from "../schema/claim-cell-name.ts";
import { putCellRecord, readCellRecords } from "./cell-records.ts";
import { apiRemainsOf, removeCell } from "./cell-removal.ts";

let api: TestDatabase;
let cell: TestDatabase;
beforeAll(async () => {
  [api, cell] = await Promise.all([freshDatabase("api"), freshDatabase("cell")]);
});
afterAll(() => Promise.all([api.drop(), cell.drop()]));

const query = (at: TestDatabase, text: string, values: readonly unknown[] = []) =>
  withClient(at.url, async (client) => (await client.query(text, [...values])).rows);
const record = (name: string, disabled = true) =>
  putCellRecord(api.url, { name, databaseUrl: cell.url, natsUrl: null, disabled });
const names = async () => (await readCellRecords(api.url)).map(({ name }) => name);

beforeEach(async () => {
  await query(api, "truncate cells, requests, moves, host_map, cell_claims cascade");
  await record("c1");
  await record("c2");
});

const request = (state: string, of = "c1") =>
  query(
    api,
    "insert into requests (server_uuid, state, cell, spec, project_id, user_id, name, created_at) values ($1, $2, $3, '', 'p', 'u', 'n', now())",
    [randomUUID(), state, of],
  );

test("a disabled cell of which nothing is left is removed, with the names of its hosts, and no other cell", async () => {
  await query(api, "insert into host_map (cell, host) values ('c1', 'h1'), ('c2', 'h2')");
  await request("dispatched", "c2");
  await request("deleted");
  expect(await apiRemainsOf(api.url, "c1")).toEqual([]);
  expect(await removeCell(api.url, "c1")).toBe(true);
  expect(await names()).toEqual(["c2"]);
  expect(await query(api, "select cell from host_map")).toEqual([{ cell: "c2" }]);
  expect(await removeCell(api.url, "c1")).toBe(false);
});

test.each([
  ["accepted", "requests under way: 1 ("],
  ["dispatched", "servers: 1 ("],
  ["failed", "servers that were not built: 1 ("],
  ["cancelled", "deletes under way: 1 ("],
])("a cell is not removed while it has a request that is %s", async (state, said) => {
  await request(state);
  expect(await apiRemainsOf(api.url, "c1")).toEqual([expect.stringContaining(said)]);
  expect(await removeCell(api.url, "c1")).toBe(false);
  expect(await names()).toEqual(["c1", "c2"]);
});

test("a cell that has been enabled is not removed, although nothing is left of it", async () => {
  await record("c1", false);
  expect(await apiRemainsOf(api.url, "c1")).toEqual([]);
  expect(await removeCell(api.url, "c1")).toBe(false);
  expect(await names()).toEqual(["c1", "c2"]);
});

test("the database of a cell says what it still has, and names the first five", async () => {
  expect(await cellRemainsIn(cell.url, "c1")).toEqual([]);
  await query(cell, `insert into conductors (id, name, lease_expires_at) values ($1, 'old', now() - interval '1 s')`, [
    randomUUID(),
  ]);
  expect(await cellRemainsIn(cell.url, "c1")).toEqual([]);
  await query(cell, `insert into conductors (id, name, lease_expires_at) values ($1, 'new', now() + interval '1 h')`, [
    randomUUID(),
  ]);
  for (let index = 1; index <= 6; index += 1)
    await query(cell, "insert into hosts (name, root_provider, agent_id, up) values ($1, $2, 'a', false)", [
      `h${index}`,
      randomUUID(),
    ]);
  expect(await cellRemainsIn(cell.url, "c1")).toEqual([
    "conductors that run: 1 (new)",
    "hosts: 6 (h1, h2, h3, h4, h5, …)",
  ]);
  await claimCellNameAt(cell.url, "c9");
  await expect(cellRemainsIn(cell.url, "c1")).rejects.toThrow("its URL names the database of cell c9");
});
