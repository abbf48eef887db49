import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../../runtime/free-port.ts";
import { familyCpuMs } from "../anatomy/process-usage.ts";

/** A Placement API that is measured. */
export interface MeasuredServer {
  readonly name: string;
  readonly url: string;
  /** Resident memory of its processes, in MiB; the database's is not counted. */
  memoryMib(): number;
  /** CPU milliseconds of its processes since they started; the database's are not counted. */
  cpuMs(): number;
  stop(): Promise<void>;
}

const root = resolve(import.meta.dirname, "../..");
const READY_MS = 120_000;

/** `berth api --only placement` on this database. */
export async function startBerth(cellDatabaseUrl: string): Promise<MeasuredServer> {
  const port = await freePort();
  const child = spawn(
    join(root, "bin/berth"),
    ["api", "--only", "placement", "--listen", `127.0.0.1:${port}`, "--auth", "noauth2"],
    {
      env: { ...process.env, BERTH_CELL_DATABASE_URL: cellDatabaseUrl, BERTH_LOG_LEVEL: "error" },
      stdio: ["ignore", "ignore", "inherit"],
    },
  );
  return ready({ name: "Berth", url: `http://127.0.0.1:${port}`, child, cleanUp: () => undefined });
}

/** Whether Debian's placement-api is installed, so that it can be measured for comparison. */
export function peerIsInstalled(): boolean {
  return (
    existsSync("/usr/bin/placement-manage") && existsSync("/usr/bin/uwsgi") && existsSync("/usr/bin/placement-api")
  );
}

/** Debian's placement-api under uwsgi, four processes of eight threads, on this (empty) database. */
export async function startPeer(databaseUrl: string): Promise<MeasuredServer> {
  const dir = mkdtempSync(join(tmpdir(), "berth-bench-peer-"));
  const config = join(dir, "placement.conf");
  const connection = databaseUrl.replace(/^postgres(ql)?:/, "postgresql+psycopg2:");
  writeFileSync(
    config,
    `[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = ${connection}\n[oslo_policy]\nenforce_new_defaults = false\n`,
  );
  const env = { ...process.env, OS_PLACEMENT_CONFIG_DIR: dir };
  const synced = spawnSync("/usr/bin/placement-manage", ["--config-file", config, "db", "sync"], {
    env,
    encoding: "utf8",
  });
  if (synced.status !== 0) throw new Error(`placement-manage db sync failed: ${synced.stderr.slice(-500)}`);
  const port = await freePort();
  const child = spawn(
    "/usr/bin/uwsgi",
    [
      ...["--master", "--die-on-term", "--plugins", "python3", "--processes", "4", "--threads", "8"],
      ...["--lazy-apps", "--disable-logging", "--wsgi-file", "/usr/bin/placement-api"],
      // Keeps connections open, as Berth does.
      ...["--http11-socket", `127.0.0.1:${port}`],
    ],
    { env, stdio: "ignore" },
  );
  const cleanUp = () => rmSync(dir, { recursive: true, force: true });
  return ready({ name: "placement-api (Debian, uwsgi 4×8)", url: `http://127.0.0.1:${port}`, child, cleanUp });
}

interface Started {
  readonly name: string;
  readonly url: string;
  readonly child: ChildProcess;
  readonly cleanUp: () => void;
}

async function ready({ name, url, child, cleanUp }: Started): Promise<MeasuredServer> {
  const until = Date.now() + READY_MS;
  while (!(await answers(url))) {
    if (child.exitCode !== null || Date.now() > until) throw new Error(`${name} did not start`);
    await delay(100);
  }
  return {
    name,
    url,
    memoryMib: () => residentMib(child.pid!),
    cpuMs: () => familyCpuMs(child.pid!),
    async stop() {
      const exited = new Promise((done) => child.once("exit", done));
      child.kill("SIGTERM");
      await exited;
      cleanUp();
    },
  };
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
}

/** Resident memory of a process and its children, in MiB. */
function residentMib(pid: number): number {
  const children = spawnSync("ps", ["--ppid", String(pid), "-o", "pid="], { encoding: "utf8" }).stdout;
  const pids = [pid, ...children.split("\n").map(Number).filter(Boolean)];
  return pids.reduce((sum, one) => sum + ownMib(one), 0);
}

function ownMib(pid: number): number {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}
