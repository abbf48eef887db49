import { afterEach, beforeEach, expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { copySchema, type SchemaCopy } from "../../../test/rigs/schema-copy.ts";
import { withClient } from "../client/databases.ts";
import { migrate, pendingMigrations } from "./migrate.ts";

let database: TestDatabase;
/** The schema files of another version. */
let schema: SchemaCopy;
beforeEach(async () => {
  database = await freshDatabase("cell");
  schema = copySchema("cell");
});
afterEach(async () => {
  schema.remove();
  await database.drop();
});

const migrateByCopy = () => migrate(database.url, "cell", { directory: schema.directory });

/** The result of `cell_add_task` in the database. The present text returns a list with the task. */
const asked = (): Promise<unknown> =>
  withClient(database.url, async (client) => {
    const { rows } = await client.query("select cell_add_task('{}', '00000000-0000-4000-8000-000000000000') as list");
    return rows[0].list;
  });
const PRESENT = ["00000000-0000-4000-8000-000000000000"];

const FILE = "functions/cell_add_task.sql";
/** Changes the text so that the function returns the UUID, and also runs the statements of `extra`. */
const changeTo = (uuid: string, extra = "") =>
  schema.write(
    FILE,
    `create or replace function cell_add_task(list uuid[], task uuid) returns uuid[]
  language sql
as $$
  select array['${uuid}']::uuid[];
$$;
${extra}`,
  );
const OTHER = "ffffffff-0000-4000-8000-000000000000";

test("a text that has changed is applied once", async () => {
  expect(await migrateByCopy()).toEqual([]);
  changeTo(OTHER);
  expect(await migrateByCopy()).toEqual(["functions/cell_add_task"]);
  expect(await asked()).toEqual([OTHER]);
  expect(await migrateByCopy()).toEqual([]);
});

test("a new function and its caller are applied in the order in which they require each other", async () => {
  schema.write(
    "functions/aa_first.sql",
    "-- requires: zz_last\ncreate or replace function aa_first() returns int language sql as $$ select zz_last() $$;\n",
  );
  schema.write(
    "functions/zz_last.sql",
    "create or replace function zz_last() returns int language sql as $$ select 7 $$;\n",
  );
  expect(await migrateByCopy()).toEqual(["functions/zz_last", "functions/aa_first"]);
  await withClient(database.url, async (client) => {
    expect((await client.query("select aa_first() as n")).rows).toEqual([{ n: 7 }]);
  });
});

test("refuses functions that require each other in a circle, or one without a file", async () => {
  schema.write("functions/cell_note.sql", `-- requires: cell_own\n${schema.read("functions/cell_note.sql")}`);
  await expect(migrateByCopy()).rejects.toThrow(/cell_note → cell_own → cell_note|cell_own → cell_note → cell_own/);
  schema.write("functions/cell_note.sql", "-- requires: cell_nothing\n");
  await expect(migrateByCopy()).rejects.toThrow("cell_note requires the function cell_nothing, which has no file");
});

test("changes no function when one of them fails", async () => {
  changeTo(OTHER);
  schema.write(
    "functions/cell_zz_broken.sql",
    "create or replace function cell_zz_broken() returns int as 'nonsense' language sql;\n",
  );
  await expect(migrateByCopy()).rejects.toThrow("the function cell_zz_broken: syntax error");
  expect(await asked()).toEqual(PRESENT);
  await withClient(database.url, async (client) => expect(await pendingMigrations(client, "cell")).toEqual([]));
});

test("five migrators at once apply a changed text once, and none of them fails", async () => {
  // The function leaves a trace each time that it is applied.
  changeTo(
    OTHER,
    "insert into conductors (id, name, lease_expires_at) values (gen_random_uuid(), 'applied', now());\n",
  );
  const applied = await Promise.all(Array.from({ length: 5 }, migrateByCopy));
  expect(applied.flat()).toEqual(["functions/cell_add_task"]);
  await withClient(database.url, async (client) => {
    expect((await client.query("select count(*)::int as times from conductors")).rows).toEqual([{ times: 1 }]);
  });
});

test("a version whose text is older leaves the newer text alone, and its services start", async () => {
  changeTo(OTHER);
  await migrateByCopy();
  expect(await migrate(database.url, "cell")).toEqual([]);
  expect(await asked()).toEqual([OTHER]);
  await withClient(database.url, async (client) => expect(await pendingMigrations(client, "cell")).toEqual([]));
});

test("services do not start on a database whose text of a function is older than their own", async () => {
  await withClient(database.url, async (client) => {
    await client.query("update schema_functions set revision = 0, checksum = '' where name = 'cell_add_task'");
    expect(await pendingMigrations(client, "cell")).toEqual(["functions/cell_add_task"]);
  });
});

test("a migration may attach a trigger whose function needs a table of a later migration", async () => {
  schema.write(
    "migrations/9997-trigger.sql",
    "-- requires: cell_zz_trigger\ncreate table first_table (id int);\ncreate trigger note before insert on first_table for each row execute function cell_zz_trigger();\n",
  );
  schema.write("migrations/9998-table.sql", "create table second_table (id int);\n");
  schema.write(
    "functions/cell_zz_trigger.sql",
    `create or replace function cell_zz_trigger() returns trigger language plpgsql as $$
declare
  one second_table%rowtype;
begin
  insert into second_table values (new.id);
  return new;
end
$$;
`,
  );
  expect(await migrateByCopy()).toEqual(["9997-trigger", "9998-table", "functions/cell_zz_trigger"]);
  await withClient(database.url, async (client) => {
    await client.query("insert into first_table values (3)");
    expect((await client.query("select id from second_table")).rows).toEqual([{ id: 3 }]);
  });
});

test("a migration that runs outside a transaction also gets the functions that it requires", async () => {
  schema.write(
    "functions/zz_indexed.sql",
    "-- Twice the number.\ncreate or replace function zz_indexed(n int) returns int language sql immutable as $$ select n * 2 $$;\n",
  );
  schema.write(
    "migrations/9999-indexed.sql",
    "-- concurrently: writers go on\n-- requires: zz_indexed\ncreate index concurrently zz_index on tasks (zz_indexed(step));\n",
  );
  expect(await migrateByCopy()).toContain("9999-indexed");
});
