import { afterAll, beforeAll, expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { copySchema } from "../../../test/rigs/schema-copy.ts";
import { dropDatabase, ensureDatabase, withClient } from "../client/databases.ts";
import { describeUnready, migrate, pendingMigrations } from "./migrate.ts";
import { readSchemaFiles, schemaDirectory } from "./schema-files.ts";

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

test("lets ten installers of an empty database run at once, and applies each migration once", async () => {
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

test("records in a new database the migrations that the baseline replaces, so that services of the previous version can start on it", async () => {
  const { migrations } = readSchemaFiles(schemaDirectory("api"));
  const [baseline] = migrations;
  await withClient(database.url, async (client) => {
    const { rows } = await client.query(
      "select name, checksum, breaking from schema_migrations where name <> all ($1) order by name",
      [migrations.map(({ name }) => name)],
    );
    const replaced = [...(baseline?.replaces ?? [])];
    expect(replaced).not.toEqual([]);
    expect(rows).toEqual(replaced.map(([name, checksum]) => ({ name, checksum, breaking: false })));
  });
});

const FROM_THE_FUTURE =
  "insert into schema_migrations (name, kind, checksum, breaking) values ('9999-future', 'api', '', $1)";

test("leaves a newer database alone, and lets services of the previous version start on it", async () => {
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

test("tells an older process to start its newer version instead of migrating a database that is newer than it", async () => {
  await withClient(database.url, async (client) => {
    const asked = () => describeUnready(client, "api", "the API database");
    expect(await asked()).toBeNull();
    const { rows } = await client.query<{ name: string; revision: number; checksum: string }>(
      "delete from schema_functions where name = 'is_open_request' returning name, revision, checksum",
    );
    expect(await asked()).toBe("the API database lacks functions/is_open_request; run `berth db migrate`");
    await client.query(FROM_THE_FUTURE, [false]);
    expect(await asked()).toMatch(
      /^this process is older than the API database, which has 9999.*: start the newer version/,
    );
    await client.query("delete from schema_migrations where name like '9999%'");
    await client.query("update schema_functions set revision = revision + 1000 where name = $1", ["follow_requests"]);
    expect(await asked()).toMatch(/which has functions\/.* of a newer version .*: start the newer version/);
    await client.query("update schema_functions set revision = revision - 1000 where name = $1", ["follow_requests"]);
    const [row] = rows;
    await client.query("insert into schema_functions (name, revision, checksum) values ($1, $2, $3)", [
      row?.name,
      row?.revision,
      row?.checksum,
    ]);
    expect(await asked()).toBeNull();
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

/** Runs `work` with the api's schema and one more migration. */
async function withOneMore(sql: string, work: (directory: URL) => Promise<void>): Promise<void> {
  const schema = copySchema("api");
  try {
    schema.write("migrations/9998-more.sql", sql);
    await work(schema.directory);
  } finally {
    await withClient(database.url, (client) => client.query("delete from schema_migrations where name like '9998%'"));
    schema.remove();
  }
}

const NEEDS_A_LOCK = "alter table requests alter column fault set default null;";

/** Runs `work` during a transaction of another program that has read the requests, as a backup does for hours. */
async function whileRead<Result>(work: (end: () => Promise<unknown>, pid: number) => Promise<Result>): Promise<Result> {
  return withClient(database.url, async (client) => {
    await client.query("set application_name to 'a backup'");
    await client.query("begin");
    const { rows } = await client.query<{ pid: number }>(
      "select pg_backend_pid() as pid, (select count(*) from requests)",
    );
    return work(() => client.query("rollback"), rows[0]!.pid);
  });
}

test("lets others read behind a migration that waits for a lock, and goes through once it is free", async () => {
  await withOneMore(NEEDS_A_LOCK, (directory) =>
    whileRead(async (end) => {
      const blocked = Promise.withResolvers<readonly string[]>();
      const migrating = migrate(database.url, "api", {
        directory,
        lockTimeoutMs: 500,
        pauseMs: 50,
        triesMax: 1_000,
        // A try may end before the first check of a busy machine has found who holds the lock. A later one finds it.
        onBlocked: (_, blockers) => blockers.length > 0 && blocked.resolve(blockers),
      });
      expect(await blocked.promise).toEqual([expect.stringContaining("a backup")]);
      // The migration steps back between two tries. Otherwise these reads would wait behind it for the backup's end, and the test for ever.
      for (let reads = 0; reads < 3; reads += 1)
        await withClient(database.url, (client) => client.query("select count(*) from requests"));
      await end();
      expect(await migrating).toEqual(["9998-more"]);
    }),
  );
});

test("names the holders of the lock when it gives up, and leaves the database as it was", async () => {
  await withOneMore(NEEDS_A_LOCK, (directory) =>
    whileRead(async (_, pid) => {
      const migrating = migrate(database.url, "api", { directory, lockTimeoutMs: 1_000, pauseMs: 10, triesMax: 3 });
      const error = await migrating.catch((reason: unknown) => reason);
      expect(error).toMatchObject({ code: "blocked" });
      expect((error as Error).message).toMatch(
        new RegExp(`9998-more did not get all locks in 3 tries.*pid ${pid} \\(a backup, user .*select pg_backend_pid`),
      );
      expect(await migrate(database.url, "api")).toEqual([]);
    }),
  );
});

test("builds an index concurrently beside writers, and again after an interrupted try", async () => {
  const sql = `-- concurrently: writers go on
drop index concurrently if exists requests_more;
create index concurrently requests_more on requests (name);
`;
  await withOneMore(sql, async (directory) => {
    await withClient(database.url, async (writer) => {
      await writer.query("begin");
      await writer.query("lock table requests in row exclusive mode");
      const blocked = Promise.withResolvers<void>();
      const migrating = migrate(database.url, "api", {
        directory,
        lockTimeoutMs: 500,
        pauseMs: 50,
        triesMax: 1_000,
        onBlocked: () => blocked.resolve(),
      });
      await blocked.promise;
      await writer.query("rollback");
      expect(await migrating).toEqual(["9998-more"]);
      const { rows } = await writer.query(
        "select indisvalid from pg_index where indexrelid = 'requests_more'::regclass",
      );
      expect(rows).toEqual([{ indisvalid: true }]);
      await writer.query("drop index requests_more");
    });
  });
});

test("refuses a database whose migrations were changed", async () => {
  await withClient(database.url, async (client) => {
    await client.query("update schema_migrations set checksum = 'x' where name like '0001%'");
    await expect(pendingMigrations(client, "api")).rejects.toMatchObject({ code: "changed" });
  });
});
