import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, inject, onTestFinished, test } from "vitest";
import { PostgresApiStore } from "../../adapters/postgres/api/postgres-api-store.ts";
import { withClient } from "../../adapters/postgres/client/databases.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { serverId, serverSpec } from "../contract/cell-fixtures.ts";
import { freshDatabase } from "../rigs/databases.ts";

const run = promisify(execFile);

/** The backup also contains the rows that migrations insert, so the tables are emptied first, as docs/operating.md says. */
const TRUNCATE_ALL = `do $$ begin
  execute (select 'truncate ' || string_agg(oid::regclass::text, ', ') from pg_class
    where relkind = 'r' and relnamespace = 'public'::regnamespace and relname <> 'schema_migrations');
end $$`;

/** The embedded Postgres has no pg_dump, so the test runs only where one of the server's own version is installed. */
async function canDump(): Promise<boolean> {
  try {
    const { stdout } = await run("pg_dump", ["--version"]);
    const { rows } = await withClient(inject("postgresUrl"), (client) =>
      client.query<{ server_version_num: string }>("show server_version_num"),
    );
    return Number(/(\d+)\./.exec(stdout)?.[1]) >= Math.floor(Number(rows[0]?.server_version_num) / 10_000);
  } catch {
    return false;
  }
}

describe("a backup that pg_dump made", async () => {
  test.skipIf(!(await canDump()))("of the data alone is restored whole into a new API database", async () => {
    const [from, to] = [await freshDatabase("api"), await freshDatabase("api")];
    onTestFinished(async () => {
      await from.drop();
      await to.drop();
    });
    const store = new PostgresApiStore(createPool({ url: from.url, applicationName: "restore test" }));
    await store.accept([1, 2, 3].map((server) => serverSpec(server)));
    await store.assignCells([{ serverUuid: serverId(1), from: null, to: "east" }]);
    await store.close();
    const dump = await run("pg_dump", ["--data-only", "--exclude-table=schema_migrations", "--dbname", from.url]);
    await withClient(to.url, (client) => client.query(TRUNCATE_ALL));
    const restoring = run("psql", ["--quiet", "--set=ON_ERROR_STOP=1", "--dbname", to.url]);
    restoring.child.stdin?.end(dump.stdout);
    await restoring;
    for (const table of ["requests", "open_requests"]) {
      const rowsOf = async (url: string) =>
        (await withClient(url, (client) => client.query(`select * from ${table} order by server_uuid`))).rows;
      const restored = await rowsOf(to.url);
      expect(restored).toHaveLength(3);
      expect(restored).toEqual(await rowsOf(from.url));
    }
  });
});
