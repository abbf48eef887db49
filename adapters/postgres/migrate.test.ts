import { afterAll, beforeAll, expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../../test/databases.ts";
import { dropDatabase, ensureDatabase, withClient } from "./databases.ts";
import { migrate, pendingMigrations } from "./migrate.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await freshDatabase("api");
});
afterAll(() => database.drop());

test("does nothing to a database that is up to date", async () => {
  expect(await migrate(database.url, "api")).toEqual([]);
});

test("refuses to make a cell's database out of the API tier's", async () => {
  await expect(migrate(database.url, "cell")).rejects.toMatchObject({ code: "other-kind" });
});

test("lets ten installers of an empty database run at once, each migration applied once", async () => {
  const name = `test_empty_${process.pid}`;
  await ensureDatabase(database.url, name);
  const url = Object.assign(new URL(database.url), { pathname: `/${name}` }).href;
  try {
    const expected = await withClient(url, (client) => pendingMigrations(client, "cell"));
    expect(expected).not.toEqual([]);
    const applied = await Promise.all(Array.from({ length: 10 }, () => migrate(url, "cell")));
    expect(applied.flat()).toEqual(expected);
    expect(await withClient(url, (client) => pendingMigrations(client, "cell"))).toEqual([]);
  } finally {
    await dropDatabase(database.url, name);
  }
});

const FROM_THE_FUTURE =
  "insert into schema_migrations (name, kind, checksum, breaking) values ('9999-future', 'api', '', $1)";

test("leaves a newer database alone, and lets services of the version before start on it", async () => {
  await withClient(database.url, async (client) => {
    await client.query(FROM_THE_FUTURE, [false]);
    await expect(migrate(database.url, "api")).rejects.toMatchObject({
      code: "too-new",
      message: expect.stringContaining("9999"),
    });
    expect(await pendingMigrations(client, "api")).toEqual([]);
    await client.query("delete from schema_migrations where name like '9999%'");
  });
});

test("lets no service start on a database with an unknown migration that breaks older programs", async () => {
  await withClient(database.url, async (client) => {
    await client.query(FROM_THE_FUTURE, [true]);
    await expect(pendingMigrations(client, "api")).rejects.toMatchObject({ code: "too-new" });
    await client.query("delete from schema_migrations where name like '9999%'");
  });
});

test("reads and migrates a database that was installed before migrations could be marked as breaking", async () => {
  await withClient(database.url, async (client) => {
    await client.query("alter table schema_migrations drop column breaking");
    expect(await pendingMigrations(client, "api")).toEqual([]);
    expect(await migrate(database.url, "api")).toEqual([]);
    await client.query("select breaking from schema_migrations");
  });
});

test("refuses a database whose migrations were changed", async () => {
  await withClient(database.url, async (client) => {
    await client.query("update schema_migrations set checksum = 'x' where name like '0001%'");
    await expect(pendingMigrations(client, "api")).rejects.toMatchObject({ code: "changed" });
  });
});
