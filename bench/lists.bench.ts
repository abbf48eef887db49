import { fetch } from "undici";
import { dropDatabase, ensureDatabase } from "../adapters/postgres/client/databases.ts";
import { startEmbedded } from "../adapters/postgres/embedded/embedded.ts";
import { migrate } from "../adapters/postgres/schema/migrate.ts";
import { startCloud } from "../cloud/embedded-cloud.ts";
import { createLogger } from "../runtime/logger.ts";
import { reservationIdOf } from "../services/api/compute/servers/reservation-id.ts";
import { SERVER_ATTRIBUTES } from "../services/api/compute/servers/server-attributes.ts";
import { exactFamilyCpuMs } from "./anatomy/process-usage.ts";
import {
  fillServers,
  isFilled,
  LARGE_PROJECT,
  middleOf,
  RARE,
  requestIdOf,
  SMALL_PROJECT,
  SMALL_ZONE,
  TWENTIETH,
  USER,
} from "./lists/fill-servers.ts";
import { measuredOf } from "./measure.ts";

/**
 * Measures pages of 100 servers in a cloud of 1,000,000 servers, over HTTP, with the api, its databases and the client on this machine.
 * `BERTH_BENCH_SERVERS` sets their number, and `BERTH_BENCH_ONLY` measures only lists whose names or queries contain one of these texts, which commas
 * separate. The CPU is that of this process (api, scheduler, conductor and client), and of Postgres. With `BERTH_BENCH_DATA`, a directory, the databases are kept there, so that the next run finds them filled. Every filter and every sort key of Nova's schema has a line. A list that is refused shows the error.
 */
const SERVERS = Number(process.env["BERTH_BENCH_SERVERS"] ?? 1_000_000);
const ONLY = (process.env["BERTH_BENCH_ONLY"] ?? "").split(",");
const DATA = process.env["BERTH_BENCH_DATA"];
const CELL = "cell-1";
/** A server of the large project in the middle of the list. */
const ONE_SERVER = `server-${(SERVERS >> 1) + 7}`;
const LIST_ROUNDS = 11;
/** A list that takes longer than this is requested fewer times. */
const SLOW_MS = 1_000;
const ROUNDS_OF_SLOW = 3;
/** The servers were created one after the other over this time. */
const CREATED_OVER_MS = 400 * 86_400_000;

interface List {
  readonly what: string;
  readonly query: string;
  /** The caller, as `user:project`; by default an admin who asks for all projects. */
  readonly as?: string;
}

const LISTS: readonly List[] = [
  { what: "all projects", query: "" },
  { what: "the large project", query: "", as: `ann:${LARGE_PROJECT}` },
  { what: "a project of 100 servers", query: "", as: `ann:${SMALL_PROJECT}` },
  { what: "from a marker in the middle on", query: "marker=MIDDLE" },
  { what: "status=ACTIVE", query: "status=ACTIVE" },
  { what: "status=SHUTOFF", query: "status=SHUTOFF" },
  { what: "status=ERROR", query: "status=ERROR" },
  { what: "vm_state=stopped", query: "vm_state=stopped" },
  { what: "power_state=4", query: "power_state=4" },
  { what: "task_state= of none", query: "task_state=rebuilding" },
  { what: "host=", query: "host=bench-host-77" },
  { what: "locked=true", query: "locked=true" },
  { what: "tags=blue", query: "tags=blue" },
  { what: "name= of one server", query: `name=${ONE_SERVER}` },
  { what: "name= of one server of the large project", query: `name=${ONE_SERVER}`, as: `ann:${LARGE_PROJECT}` },
  { what: "flavor= of one in 1,000", query: `flavor=${RARE.flavor}` },
  { what: "image= of one in 1,000", query: `image=${RARE.image}` },
  { what: "image= of none, the large project", query: `image=${RARE.image}`, as: `ann:${LARGE_PROJECT}` },
  { what: "flavor= of nearly all, a project of 100 servers", query: "flavor=0", as: `ann:${SMALL_PROJECT}` },
  { what: "user_id= of all", query: `user_id=${USER}` },
  { what: "changes-since= the last 0.01 %", query: "changes-since=RECENT" },
  { what: "changes-since= of all", query: "changes-since=2000-01-01T00:00:00Z" },
  {
    what: "changes-since= of all, the large project",
    query: "changes-since=2000-01-01T00:00:00Z",
    as: `ann:${LARGE_PROJECT}`,
  },
  { what: "changes-before= of all", query: "changes-before=2100-01-01T00:00:00Z" },
  { what: "deleted=true", query: "deleted=true" },
  { what: "deleted=true, status=ACTIVE", query: "deleted=true&status=ACTIVE" },
  { what: "key_name= of one server in 500", query: "key_name=^key-77$" },
  { what: "key_name= of one server in 500, the large project", query: "key_name=^key-77$", as: `ann:${LARGE_PROJECT}` },
  { what: "key_name= of one server in 5", query: "key_name=key-1" },
  { what: "key_name= of none", query: "key_name=nobody" },
  { what: "availability_zone= of one host in 200", query: `availability_zone=${SMALL_ZONE}` },
  { what: "availability_zone= of nearly all", query: "availability_zone=nova" },
  { what: "availability_zone= of none", query: "availability_zone=nowhere" },
  { what: "user_id= of all, flavor= of one in 1,000", query: `user_id=${USER}&flavor=${RARE.flavor}` },
  { what: "user_id= of all, flavor= of one in 20", query: `user_id=${USER}&flavor=${TWENTIETH}` },
  { what: "flavor= of one in 20, key_name= of one in 500", query: `flavor=${TWENTIETH}&key_name=^key-77$` },
  { what: "flavor= of one in 20, key_name= of another 20th", query: `flavor=${TWENTIETH}&key_name=^key-78$` },
  { what: "flavor= of one in 20, a project with none", query: `flavor=${TWENTIETH}`, as: `ann:${SMALL_PROJECT}` },
  { what: "flavor= of one in 20, the large project", query: `flavor=${TWENTIETH}`, as: `ann:${LARGE_PROJECT}` },
  { what: "status= of one in 20", query: "status=SUSPENDED" },
  { what: "status= of one in 20, from the middle on", query: "status=SUSPENDED&marker=MIDDLE" },
  { what: "status= of one in 20, flavor= of one in 1,000", query: `status=SUSPENDED&flavor=${RARE.flavor}` },
  { what: "status= of one in 20, a project of 1,000 with none", query: "status=SUSPENDED", as: `ann:${SMALL_PROJECT}` },
  { what: "status=SHUTOFF, flavor= of one in 20", query: `status=SHUTOFF&flavor=${TWENTIETH}` },
  { what: "host=, flavor= of one in 20", query: `host=bench-host-7&flavor=${TWENTIETH}` },
  {
    what: "status=ACTIVE, availability_zone= of one host in 200",
    query: `status=ACTIVE&availability_zone=${SMALL_ZONE}`,
  },
  { what: "name= of many, flavor= of one in 1,000", query: `name=server-1&flavor=${RARE.flavor}` },
  { what: "name= of nearly all", query: "name=server" },
  { what: "reservation_id= of one server", query: `reservation_id=${reservationIdOf(requestIdOf(SERVERS >> 1))}` },
  { what: "status= of all, image= of one in 1,000", query: `status=ACTIVE&image=${RARE.image}` },
  ...[
    ...["ip=10.0.0.7", "ip6=fd00::7", "access_ip_v4=10.0.0.7", "access_ip_v6=fd00::7", "auto_disk_config=1"],
    ...[
      "config_drive=false",
      "config_drive=true",
      "created_at=^2",
      "description=none",
      "kernel_id=none",
      "launch_index=0",
    ],
    ...["launched_at=^2", "locked=false", "locked_by=owner", "node=bench-host-77", "not-tags=blue", "progress=0"],
    ...[
      "ramdisk_id=none",
      "reservation_id=none",
      "root_device_name=vda",
      "tags-any=blue",
      "terminated_at=^2",
      "deleted=true",
    ],
    ...[`hostname=${ONE_SERVER}`, "soft_deleted=true", "not-tags-any=blue", "changes-before=2000-01-01T00:00:00Z"],
  ].map((query) => ({ what: query, query })),
  { what: "sort_key=display_name", query: "sort_key=display_name&sort_dir=asc" },
  { what: "sort_key=created_at, oldest first", query: "sort_key=created_at&sort_dir=asc" },
  {
    what: "sort_key=display_name, a project of 100 servers",
    query: "sort_key=display_name",
    as: `ann:${SMALL_PROJECT}`,
  },
  ...Object.keys(SERVER_ATTRIBUTES)
    .filter((key) => !["created_at", "display_name", "reservation_id"].includes(key))
    .flatMap((key) => [
      { what: `sort_key=${key}`, query: `sort_key=${key}` },
      { what: `sort_key=${key}, flavor= of one in 1,000`, query: `sort_key=${key}&flavor=${RARE.flavor}` },
    ]),
];

export async function run(): Promise<void> {
  const server = await startEmbedded({
    ...(DATA !== undefined && { dataDir: DATA }),
    settings: { shared_buffers: "256MB", max_wal_size: "4GB" },
  });
  try {
    const databases = { api: server.url("lists"), cell: server.url(`lists_cell_${CELL}`), cellName: CELL };
    await prepare(databases, server.url("postgres"));
    const middle = await middleOf(databases.api, SERVERS);
    const cloud = await startCloud({
      ...{ databaseUrl: databases.api, dataDir: null, schedulers: 1, conductors: 1, auth: "noauth2" },
      cells: [{ name: CELL, hosts: [] }],
      listen: { host: "127.0.0.1", port: 0 },
      logger: createLogger({ name: "bench", level: "error" }),
      fail: (error) => {
        throw error;
      },
    });
    try {
      const title = `pages of 100 of ${SERVERS.toLocaleString("en-US")} servers`;
      process.stdout.write(
        `  ${title.padEnd(52)} ${"ms".padStart(8)} ${"(min to max)".padEnd(20)} ${"CPU ms".padStart(8)} ${"Postgres".padStart(8)} ${"servers".padStart(8)}\n`,
      );
      const wanted = LISTS.filter(({ what, query }) =>
        ONLY.some((text) => what.includes(text) || query.includes(text)),
      );
      for (const list of wanted) await measureList({ apiUrl: cloud.apiUrl, postgres: server.pid }, list, middle);
    } finally {
      await cloud.close();
    }
  } finally {
    await server.stop();
  }
}

/** Fills the databases, unless an earlier run has filled them with as many servers. */
async function prepare(
  databases: { readonly api: string; readonly cell: string; readonly cellName: string },
  adminUrl: string,
): Promise<void> {
  const names = ["lists", `lists_cell_${CELL}`];
  const ensure = async () => {
    for (const name of names) await ensureDatabase(adminUrl, name);
  };
  await ensure();
  if (!(await isFilled(databases, SERVERS))) {
    for (const name of names) await dropDatabase(adminUrl, name);
    await ensure();
  }
  await migrate(databases.api, "api");
  await migrate(databases.cell, "cell");
  if (!(await isFilled(databases, SERVERS))) await fillServers(databases, SERVERS);
}

async function measureList(
  { apiUrl, postgres }: { readonly apiUrl: string; readonly postgres: number },
  { what, query, as = "admin:ops" }: List,
  middle: string,
): Promise<void> {
  const recent = new Date(Date.now() - CREATED_OVER_MS / 10_000).toISOString();
  const text = query.replace("MIDDLE", middle).replace("RECENT", recent);
  const path = `/v2.1/servers?limit=100${as.startsWith("admin") ? "&all_tenants=1" : ""}&${text}`;
  const times: number[] = [];
  // The first page also prepares the statements.
  let answer = await get(apiUrl, path, as);
  const postgresBeforeMs = exactFamilyCpuMs(postgres);
  const cpu = process.cpuUsage();
  for (let round = 0; round < LIST_ROUNDS && answer.status === 200; round += 1) {
    const startMs = performance.now();
    answer = await get(apiUrl, path, as);
    times.push(performance.now() - startMs);
    if (times.length >= ROUNDS_OF_SLOW && times[0]! > SLOW_MS) break;
  }
  const { user, system } = process.cpuUsage(cpu);
  const cpuMs = [(user + system) / 1_000, exactFamilyCpuMs(postgres) - postgresBeforeMs].map((ms) => ms / times.length);
  process.stdout.write(
    `  ${what.padEnd(52)} ${answer.status === 200 ? figures(times, cpuMs, answer.servers) : answer.text.slice(0, 120)}\n`,
  );
}

function figures(times: readonly number[], cpuMs: readonly number[], servers: number): string {
  const { median, min, max } = measuredOf(times);
  const [shown, low, high, cpu, postgres] = [median, min, max, ...cpuMs].map((value) =>
    value.toLocaleString("en-US", { maximumSignificantDigits: 3 }),
  );
  return (
    `${(shown ?? "").padStart(8)} (${low} to ${high})`.padEnd(30) +
    `${(cpu ?? "").padStart(8)} ${(postgres ?? "").padStart(8)} ${String(servers).padStart(8)}`
  );
}

/** The status of an answer, its text, and the number of servers in it. */
async function get(apiUrl: string, path: string, token: string) {
  const headers = { "x-auth-token": token, "openstack-api-version": "compute 2.90" };
  const response = await fetch(`${apiUrl}${path}`, { headers });
  const text = await response.text();
  return { status: response.status, text, servers: response.status === 200 ? JSON.parse(text).servers.length : 0 };
}
