import { ensureDatabase, withClient } from "../adapters/postgres/client/databases.ts";
import { type EmbeddedPostgres, startEmbedded } from "../adapters/postgres/embedded/embedded.ts";
import { migrate } from "../adapters/postgres/schema/migrate.ts";
import { isClean } from "../audit/audit-report.ts";
import { type AuditOptions, auditTwice } from "../audit/audit-twice.ts";
import { endedChildrenMs } from "./anatomy/process-usage.ts";
import { fillCell, uuidSql } from "./full-cell.ts";

const SERVERS = Number(process.env.BERTH_BENCH_SERVERS ?? 1_000_000);
const CELLS = ["north", "south"];
const SERVERS_OF_HOST = 50;
const ROUNDS = 3;
const MIB = 2 ** 20;
const DATA = process.env["BERTH_BENCH_DATA"];

/**
 * Measures a whole audit of a cloud in order, first with a tenth of the servers and then with all, to show what grows with them. `BERTH_BENCH_SERVERS`
 * sets their number. With `BERTH_BENCH_DATA`, a directory, the databases of all of them are kept there, and only these are audited: the next run finds
 * them filled.
 */
export async function run(): Promise<void> {
  for (const servers of DATA === undefined ? [SERVERS / 10, SERVERS] : [SERVERS]) {
    const server = await startEmbedded(DATA === undefined ? {} : { dataDir: DATA });
    try {
      await reportAudits(server, servers);
    } finally {
      await server.stop();
    }
  }
}

async function reportAudits(server: EmbeddedPostgres, servers: number): Promise<void> {
  const options = await makeCloud(server, servers / CELLS.length);
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = process.cpuUsage();
    const backendsBeforeMs = endedChildrenMs(server.pid);
    const startedMs = performance.now();
    const report = await auditTwice(options);
    const { counts } = report;
    if (!isClean(report) || [counts.servers, counts.consumers, counts.requests].some((count) => count !== servers))
      throw new Error(`the cloud is in order, but the report says ${JSON.stringify(report).slice(0, 1_000)}`);
    const seconds = (performance.now() - startedMs) / 1_000;
    const { user, system } = process.cpuUsage(before);
    // The server counts a backend's time when the backend has ended, so one more session is opened and ended first.
    await withClient(server.url("postgres"), (client) => client.query("checkpoint"));
    const backendsMs = endedChildrenMs(server.pid) - backendsBeforeMs;
    const figures = [
      `${seconds.toFixed(1)} s`,
      `CPU of node ${Math.round((user + system) / 1_000)} ms`,
      `of Postgres ${Math.round(backendsMs)} ms`,
      `peak RSS of node ${Math.round((process.resourceUsage().maxRSS * 1_024) / MIB)} MiB`,
    ];
    process.stdout.write(`  audit of ${servers.toLocaleString("en-US")} servers: ${figures.join(", ")}\n`);
  }
}

/** A cloud in which every server is ACTIVE and has three allocations on its host, and a request that is dispatched. */
async function makeCloud(server: EmbeddedPostgres, serversOfCell: number): Promise<AuditOptions> {
  const [api, ...cells] = await Promise.all(
    ["api", ...CELLS].map(async (name) => {
      await ensureDatabase(server.url("postgres"), `bench_audit_${name}`);
      const url = server.url(`bench_audit_${name}`);
      await migrate(url, name === "api" ? "api" : "cell");
      return url;
    }),
  );
  const made = {
    apiUrl: api!,
    cells: CELLS.map((name, index) => ({ name, databaseUrl: cells[index]! })),
    ...{ pauseMs: 0, patienceMs: 600_000, conductorSettings: [] },
  };
  if (await isFilled(api!)) return made;
  for (const [index, url] of cells.entries()) {
    await fillCell(url, { cell: index, servers: serversOfCell, hosts: Math.ceil(serversOfCell / SERVERS_OF_HOST) });
  }
  await withClient(api!, async (client) => {
    for (const [index, name] of CELLS.entries())
      await client.query(
        `insert into requests (server_uuid, state, cell, spec, project_id, user_id, name, created_at)
         select ${uuidSql(index)}, 'dispatched', $1, '', 'p', 'u', 's' || n, now() from generate_series(1, $2::int) n`,
        [name, serversOfCell],
      );
    await client.query("vacuum analyze requests");
    await client.query("create table bench_filled ()");
  });
  return made;
}

/** Whether an earlier run has filled the databases to the end. */
async function isFilled(apiUrl: string): Promise<boolean> {
  const { rows } = await withClient(apiUrl, (client) =>
    client.query<{ readonly filled: boolean }>("select to_regclass('bench_filled') is not null as filled"),
  );
  return rows[0]!.filled;
}
