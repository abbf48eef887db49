import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { serverId, serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { createPool } from "../client/pool.ts";
import { readVolumeHolders } from "./read-volume-holders.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "volume holders test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

test("a server that could not be built is not at rest, since its volumes are free again, unlike one that has run or has a host", async () => {
  const rows = [
    ["ERROR", null, null],
    ["ERROR", null, new Date()],
    ["ERROR", "h-0", null],
    ["ACTIVE", "h-0", new Date()],
  ] as const;
  for (const [at, [status, host, launchedAt]] of rows.entries())
    await pool.query(
      `insert into servers (uuid, status, spec, project_id, user_id, name, created_at, host, launched_at)
       values ($1, $2, $3, 'p', 'ann', 'web', now(), $4, $5)`,
      [serverId(at), status, Buffer.from(ServerSpec.encode(serverSpec(at)).finish()), host, launchedAt],
    );
  const uuids = rows.map((_, at) => serverId(at));
  const holders = await readVolumeHolders(
    { cell: "c-1", databaseUrl: database.url },
    { servers: uuids, volumes: [] },
    0,
  );
  expect(uuids.map((uuid) => holders.get(uuid)?.isAtRest)).toEqual([false, true, true, true]);
});
