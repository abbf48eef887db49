import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Pool } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { PostgresApiStore } from "../../adapters/postgres/api/postgres-api-store.ts";
import { PostgresVolumeStore } from "../../adapters/postgres/api/postgres-volume-store.ts";
import type { ArchiveSink } from "../../adapters/postgres/archive/archive-pass.ts";
import { PostgresCellStore } from "../../adapters/postgres/cell/postgres-cell-store.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { type ArchiveCommandOptions, archiveDatabases } from "../../cli/archive/archive-databases.ts";
import { openArchiveFile } from "../../cli/archive/archive-file.ts";
import { runDbArchiveCommand } from "../../cli/db-archive.ts";
import { dispatchOf, hostTree, serverId, serverSpec } from "../contract/cell-fixtures.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";
import { emptyCellTables } from "../rigs/empty-cell.ts";

const DAY_MS = 24 * 3_600_000;
const OLD = "now() - interval '100 days'";
/** The number of each server decides its fate. */
const GONE = serverId(1);
const YOUNG = serverId(2);
const UNHEARD = serverId(3);
const HOLDING = serverId(4);
const LIVING = serverId(5);
const SHUT = serverId(6);
const MOVING = serverId(7);
const BUSY = serverId(8);
const SERVERS = [1, 2, 3, 4, 5, 7, 8];

let cell: TestDatabase;
let api: TestDatabase;
let pool: Pool;
let apiPool: Pool;

beforeAll(async () => {
  [cell, api] = await Promise.all([freshDatabase("cell"), freshDatabase("api")]);
  pool = createPool({ url: cell.url, applicationName: "archive test" });
  apiPool = createPool({ url: api.url, applicationName: "archive test" });
});
afterAll(async () => {
  await Promise.all([pool.end(), apiPool.end()]);
  await Promise.all([cell.drop(), api.drop()]);
});

beforeEach(async () => {
  await emptyCellTables(pool);
  await apiPool.query("truncate requests, cells, moves, former_aggregates, server_groups, volumes cascade");
  const requests = new PostgresApiStore(apiPool);
  await requests.putCell({ name: "c1", databaseUrl: cell.url, natsUrl: null, disabled: false });
  await new PostgresLedger(pool).putTrees([hostTree(0, 100)]);
  await requests.accept(SERVERS.map((server) => serverSpec(server)));
  await requests.assignCells(SERVERS.map((server) => ({ serverUuid: serverId(server), from: null, to: "c1" })));
  const store = new PostgresCellStore(pool);
  const dispatched = await store.dispatch(SERVERS.map((server) => dispatchOf({ server, task: server, hosts: [0] })));
  expect(dispatched.map(({ kind }) => kind)).toEqual(SERVERS.map(() => "dispatched"));
  await store.close([{ serverUuid: SHUT, assignment: 0 }]);
  await endAll();
});

/** Ends all servers but one, some long ago and some just now. Each of the others is kept by something. */
async function endAll(): Promise<void> {
  const ended = [GONE, YOUNG, UNHEARD, HOLDING, MOVING, BUSY];
  const released = ended.filter((uuid) => uuid !== HOLDING);
  await pool.query("delete from allocations where consumer_uuid = any ($1)", [released]);
  await pool.query("delete from consumers where uuid = any ($1)", [released]);
  await pool.query(`update servers set status = 'DELETED', host = null, deleted_at = ${OLD} where uuid = any ($1)`, [
    ended,
  ]);
  await pool.query("update servers set deleted_at = now() where uuid = $1", [YOUNG]);
  await pool.query(`update servers set updated_at = ${OLD} where uuid = $1`, [SHUT]);
  await pool.query(`update tasks set outcome = 'deleted', ended_at = ${OLD}`);
  await pool.query("update tasks set outcome = null, ended_at = null where server_uuid = $1", [BUSY]);
  await pool.query(
    `insert into migrations (uuid, server_uuid, kind, status, dest_host, dest_attempt_id, ended, runs)
     select gen_random_uuid(), uuid, 'resize', 'confirmed', '', '', true, false from servers where uuid = $1`,
    [GONE],
  );
  await pool.query("insert into group_members (server_uuid, group_uuid) values ($1, gen_random_uuid())", [GONE]);
  await apiPool.query(
    `update requests set state = 'deleted', gone = true, updated_at = ${OLD} where server_uuid <> $1`,
    [LIVING],
  );
  await apiPool.query("update requests set state = 'cancelled' where server_uuid = $1", [UNHEARD]);
  await apiPool.query("update requests set updated_at = now() where server_uuid = $1", [YOUNG]);
  await apiPool.query(
    `insert into moves (id, server_uuid, kind, request, state, updated_at)
     select gen_random_uuid(), w.uuid, 'resize', '', w.state, ${OLD}
     from (values ($1::uuid, 'begun'), ($2, 'refused'), ($3, 'accepted')) as w (uuid, state)`,
    [LIVING, GONE, MOVING],
  );
}

const uuidsIn = async (from: Pool, table: string, column: string): Promise<readonly string[]> =>
  (await from.query<{ uuid: string }>(`select ${column} as uuid from ${table} order by 1`)).rows.map(
    ({ uuid }) => uuid,
  );

async function archive(sink: ArchiveSink | null, given: Partial<ArchiveCommandOptions> = {}) {
  const counts = new Map<string, Record<string, number>>();
  const unreachable: string[] = [];
  const isWhole = await archiveDatabases(api.url, {
    beforeMs: Date.now() - 30 * DAY_MS,
    // Less than the number of rows, so that a pass takes several batches.
    batchMax: 2,
    pauseMs: 0,
    sinkOf: () => sink,
    onDone: (database, found) => {
      const some = [...found].filter(([, rows]) => rows > 0);
      if (some.length > 0) counts.set(database, Object.fromEntries(some));
    },
    onUnreachable: (database) => unreachable.push(database),
    ...given,
  });
  return { isWhole, counts: Object.fromEntries(counts), unreachable };
}

const purge: ArchiveSink = { keep: async () => undefined };

describe("an archive of finished rows", () => {
  it("takes servers that ended long ago with all their rows, and leaves those that may still be needed", async () => {
    const { counts, isWhole } = await archive(purge);
    expect(isWhole).toBe(true);
    expect(await uuidsIn(pool, "servers", "uuid")).toEqual([YOUNG, UNHEARD, HOLDING, LIVING, MOVING, BUSY].sort());
    for (const table of ["attempts", "tasks"])
      expect(await uuidsIn(pool, table, "distinct server_uuid")).toEqual(
        [YOUNG, UNHEARD, HOLDING, LIVING, MOVING, BUSY].sort(),
      );
    for (const table of ["migrations", "group_members"]) expect(await uuidsIn(pool, table, "server_uuid")).toEqual([]);
    expect(await uuidsIn(apiPool, "requests", "server_uuid")).toEqual([YOUNG, UNHEARD, LIVING].sort());
    expect(await uuidsIn(apiPool, "moves", "server_uuid")).toEqual([MOVING]);
    expect(counts).toEqual({
      "cell c1": { servers: 2, attempts: 1, migrations: 1, group_members: 1, tasks: 1 },
      "API database": { moves: 2, requests: 4 },
    });
    expect((await archive(purge)).counts).toEqual({});
  });

  it("writes each row to a file before it is deleted, readable only by its owner", async () => {
    const dir = mkdtempSync(join(tmpdir(), "berth-archive-"));
    onTestFinished(() => rmSync(dir, { recursive: true }));
    const path = join(dir, "archive.jsonl");
    const before = await pool.query("select to_jsonb(s) as row from servers s where uuid = $1", [GONE]);
    const file = await openArchiveFile(path);
    await archive(null, { sinkOf: (database) => file.sinkOf(database) });
    await file.close();
    const lines = readFileSync(path, "utf8").trim().split("\n");
    const kept = lines.map((line) => JSON.parse(line) as { database: string; table: string; row: { uuid?: string } });
    expect(kept).toHaveLength(2 + 1 + 1 + 1 + 1 + 2 + 4);
    expect(kept).toContainEqual({ database: "cell c1", table: "servers", row: before.rows[0].row });
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it("removes nothing when the file cannot be written, and continues there the next time", async () => {
    const full: ArchiveSink = { keep: async () => Promise.reject(new Error("no space left")) };
    expect(await archive(full).catch((error: Error) => error.message)).toBe("no space left");
    expect(await uuidsIn(pool, "servers", "uuid")).toHaveLength(8);
    await archive(purge);
    expect(await uuidsIn(pool, "servers", "uuid")).toHaveLength(6);
  });

  it("counts without changing anything", async () => {
    const { counts } = await archive(null);
    expect(counts["cell c1"]).toMatchObject({ servers: 2, attempts: 1, migrations: 1, group_members: 1 });
    expect(await uuidsIn(pool, "servers", "uuid")).toHaveLength(8);
    expect(await uuidsIn(apiPool, "requests", "server_uuid")).toHaveLength(SERVERS.length);
  });

  it("leaves locked rows for the next run, and waits for no lock", async () => {
    const client = await pool.connect();
    await client.query("begin");
    await client.query("select from servers where uuid = $1 for update", [GONE]);
    await archive(purge);
    await client.query("rollback");
    client.release();
    expect(await uuidsIn(pool, "servers", "uuid")).toContain(GONE);
    await archive(purge);
    expect(await uuidsIn(pool, "servers", "uuid")).not.toContain(GONE);
  });

  it("leaves a server until its volumes were given back, since only its rows tell how they are to end", async () => {
    const volumes = new PostgresVolumeStore(apiPool);
    const volume = {
      ...{ id: randomUUID(), projectId: "p", userId: "u", name: "v", description: null, sizeGib: 1, metadata: {} },
      ...{ availabilityZone: "", isBootable: false, inCinder: true, making: null, createdAtMs: 0 },
    };
    const attachment = {
      ...{ serverUuid: GONE, cell: "c1", taskId: randomUUID(), attachmentId: randomUUID(), mappingUuid: randomUUID() },
      ...{ device: "/dev/vdb", tag: null, deleteOnTermination: false },
    };
    await volumes.createVolume(volume, null, attachment);
    await archive(purge);
    expect(await uuidsIn(pool, "servers", "uuid")).toContain(GONE);
    expect(await uuidsIn(pool, "tasks", "server_uuid")).toContain(GONE);
    await volumes.release(volume.id, attachment.taskId);
    await archive(purge);
    expect(await uuidsIn(pool, "servers", "uuid")).not.toContain(GONE);
  });

  it("removes a former aggregate once no cell mirrors it, and members of groups whose requests are gone", async () => {
    const [mirrored, forgotten, group] = [randomUUID(), randomUUID(), randomUUID()];
    await apiPool.query(`insert into former_aggregates (uuid, deleted_at) select unnest($1::uuid[]), ${OLD}`, [
      [mirrored, forgotten],
    ]);
    await pool.query("insert into provider_aggregates (provider_id, aggregate) select id, $1 from resource_providers", [
      mirrored,
    ]);
    await apiPool.query(
      "insert into server_groups (uuid, name, project_id, user_id, policy) values ($1, 'g', 'p', 'u', 'affinity')",
      [group],
    );
    await apiPool.query(
      `insert into server_group_members (server_uuid, group_uuid, added_at) select unnest($1::uuid[]), $2, ${OLD}`,
      [[GONE, LIVING], group],
    );
    await archive(purge);
    expect(await uuidsIn(apiPool, "former_aggregates", "uuid")).toEqual([mirrored]);
    expect(await uuidsIn(apiPool, "server_group_members", "server_uuid")).toEqual([LIVING]);
  });

  it("skips a cell that cannot be reached, and rows that need the answer of all cells", async () => {
    const away = cell.url.replace(/\/[^/]*$/, "/no_such_database");
    const former = randomUUID();
    await new PostgresApiStore(apiPool).putCell({ name: "c2", databaseUrl: away, natsUrl: null, disabled: false });
    await apiPool.query(`insert into former_aggregates (uuid, deleted_at) values ($1, ${OLD})`, [former]);
    expect(await archive(purge)).toMatchObject({ isWhole: false, unreachable: ["cell c2"] });
    expect(await uuidsIn(pool, "servers", "uuid")).not.toContain(GONE);
    expect(await uuidsIn(apiPool, "former_aggregates", "uuid")).toEqual([former]);
  });

  it("is a command that requires a destination for the rows", async () => {
    const written: string[] = [];
    for (const stream of [process.stdout, process.stderr])
      vi.spyOn(stream, "write").mockImplementation((text) => written.push(String(text)) > 0);
    onTestFinished(() => void vi.restoreAllMocks());
    const common = ["--database-url", api.url, "--before", "30d", "--pause", "0ms"];
    expect(await runDbArchiveCommand(common)).toBe(2);
    expect(await runDbArchiveCommand([...common, "--dry-run"])).toBe(0);
    expect(await runDbArchiveCommand([...common, "--purge"])).toBe(0);
    vi.restoreAllMocks();
    const [missing, ...lines] = written;
    expect(missing).toContain("give one of --to FILE");
    expect(lines).toEqual([
      "cell c1: 2 servers, 1 attempts, 1 migrations, 1 group_members would be removed\n",
      "API database: 2 moves, 4 requests would be removed\n",
      "cell c1: 2 servers, 1 attempts, 1 migrations, 1 group_members, 1 tasks archived\n",
      "API database: 2 moves, 4 requests archived\n",
    ]);
  });
});
