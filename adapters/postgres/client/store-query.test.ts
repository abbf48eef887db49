import { afterAll, beforeAll, expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { createPool } from "./pool.ts";
import { selectMs } from "./store-query.ts";

let database: TestDatabase;
let pool: ReturnType<typeof createPool>;
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "store query test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

test("times are read as whole milliseconds, rounded down, wherever between two of them they are", async () => {
  // Each microsecond around whole milliseconds and seconds, and random ones, from 1970 to 2100.
  const { rows } = await pool.query(
    `select count(*)::int as wrong from (
       select at, ${selectMs("at")}, floor(extract(epoch from at) * 1000)::float8 as exact_ms from (
         select timestamptz 'epoch' + day * interval '1 day' + part * interval '1 us' as at
         from generate_series(0, 47000, 13) day, unnest(array[-1001, -1000, -999, -1, 0, 1, 999, 1000, 1001, 500000]) part
         union all
         select timestamptz 'epoch' + floor(random() * 4102444800000000) * interval '1 us' from generate_series(1, 50000)
       ) times
     ) read where at_ms <> exact_ms`,
  );
  expect(rows).toEqual([{ wrong: 0 }]);
  const { rows: read } = await pool.query(
    `select ${selectMs("at")} from (values (timestamptz '2026-11-27 15:00:00.123999+00'), (null), ('infinity')) t (at)`,
  );
  expect(read.map((row) => row.at_ms)).toEqual([Date.UTC(2026, 10, 27, 15, 0, 0, 123), null, Number.POSITIVE_INFINITY]);
});
