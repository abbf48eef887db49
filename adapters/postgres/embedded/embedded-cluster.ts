import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { DATA_DIR, requireDirectory } from "../../../runtime/require-directory.ts";
import { copyClusterFiles, keepPattern, patternFor } from "./cluster-pattern.ts";
import type { Binaries } from "./embedded-binaries.ts";
import { EmbeddedError } from "./embedded-error.ts";
import { canEnter, type PostgresUser } from "./embedded-user.ts";

/** The name of the superuser inside the embedded Postgres. */
export const EMBEDDED_ROLE = "berth";

/** A database cluster on disk, ready to be served. */
export interface Cluster {
  /** PGDATA. It must be where the server's account can reach it, so it is not always below the data directory. */
  readonly dir: string;
  readonly password: string;
}

/**
 * Opens the cluster of a data directory, or makes one when there is none. `dataDir/cluster` is the cluster itself, or a symlink to it in
 * `sharedDir` when Postgres's account cannot enter `dataDir`. So removing the data directory always leads to a fresh start. Two concurrent
 * processes make one cluster: the first to put it in its place wins. Refuses a cluster of another major version.
 */
export async function openCluster(
  dataDir: string,
  sharedDir: string,
  user: PostgresUser | null,
  binaries: Binaries,
  { isDurable }: { readonly isDurable: boolean },
): Promise<Cluster> {
  requireDirectory(DATA_DIR, dataDir);
  if (user !== null) chmodSync(dataDir, 0o711);
  const place = join(dataDir, "cluster");
  if (!existsSync(place)) await makeCluster(dataDir, sharedDir, user, binaries, isDurable);
  const dir = realpathSync(place);
  const major = readFileSync(join(dir, "PG_VERSION"), "utf8").trim();
  if (major !== binaries.version.split(".")[0]) {
    throw new EmbeddedError(
      "other-version",
      `${dataDir} was created by Postgres ${major}, and this is Postgres ${binaries.version}: move the data with pg_dump, or use another --data-dir`,
    );
  }
  return { dir, password: readFileSync(join(dir, "berth-password"), "utf8") };
}

/**
 * A socket's path may have 107 bytes, some of which `/.s.PGSQL.65535` takes. A comma is not allowed, because it would separate two
 * directories.
 */
const SOCKET_DIR = /^[\w./-]{1,90}$/;

/** The directory of the server's Unix socket. Null when the path is not suitable for a socket. */
export function socketDirOf(cluster: Pick<Cluster, "dir">): string | null {
  return SOCKET_DIR.test(cluster.dir) ? cluster.dir : null;
}

/** Connection URLs of the cluster's databases, by TCP, and by Unix socket where there is one. */
export function urlsOf(
  cluster: Cluster,
  port: number | string,
): { readonly url: (database: string) => string; readonly localUrl: (database: string) => string } {
  const socketDir = socketDirOf(cluster);
  const url = (database: string) => `postgres://${EMBEDDED_ROLE}:${cluster.password}@127.0.0.1:${port}/${database}`;
  // The parameter overrides the host in the URL. Tools that support only TCP ignore the parameter and use that host.
  return { url, localUrl: (database) => (socketDir === null ? url(database) : `${url(database)}?host=${socketDir}`) };
}

/** Removes a data directory with its cluster, wherever the cluster lies. The server must have stopped. */
export function removeCluster(dataDir: string): void {
  const place = join(dataDir, "cluster");
  if (existsSync(place)) rmSync(realpathSync(place), { recursive: true, force: true });
  rmSync(dataDir, { recursive: true, force: true });
}

async function makeCluster(
  dataDir: string,
  sharedDir: string,
  user: PostgresUser | null,
  binaries: Binaries,
  isDurable: boolean,
): Promise<void> {
  const place = join(dataDir, "cluster");
  // This is a link to a cluster that is gone. With an existing cluster the code would not have come here.
  rmSync(place, { force: true });
  const home = canEnter(dataDir, user) ? dataDir : join(sharedDir, "clusters");
  const dir = join(home, `cluster-${randomBytes(6).toString("hex")}`);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  if (home !== dataDir) for (const part of [dirname(home), home]) chmodSync(part, 0o711);
  try {
    await fillCluster(dir, user, binaries, isDurable);
    if (home === dataDir) renameSync(dir, place);
    else symlinkSync(dir, place);
  } catch (error) {
    rmSync(dir, { recursive: true, force: true });
    if (!existsSync(place)) throw error;
  }
}

/** Arguments of initdb besides those that name the new cluster's files. */
const INITDB_ARGS = [
  ...["-U", EMBEDDED_ROLE, "-E", "UTF8", "--no-locale", "--auth=scram-sha-256"],
  // 24 random bytes need no key stretching. The default of 4,096 rounds would cost 5 ms on each side of each new connection.
  ...["-c", "scram_iterations=1", "--no-instructions"],
];
/** A server for one statement needs none of the shared memory that a server for clients allocates. */
const ONE_STATEMENT = { shared_buffers: "1MB", wal_buffers: "64kB", max_connections: "1", max_wal_senders: "0" };

/** Makes the files of a cluster with a password of its own in an empty directory: from a pattern where one is kept, otherwise by initdb. */
async function fillCluster(
  dir: string,
  user: PostgresUser | null,
  binaries: Binaries,
  isDurable: boolean,
): Promise<void> {
  const password = randomBytes(24).toString("base64url");
  const passwordFile = `${dir}.password`;
  const run = runnerIn(dir, user);
  writeFileSync(passwordFile, password, { mode: 0o600 });
  try {
    if (user !== null) for (const path of [dir, passwordFile]) chownSync(path, user.uid, user.gid);
    const pattern = patternFor(binaries, INITDB_ARGS, user);
    if (pattern !== null && existsSync(pattern)) {
      await copyClusterFiles(pattern, dir);
      await setPassword(run, binaries, dir, password);
      if (isDurable) await run(binaries.initdb, ["--sync-only", "-D", dir]);
    } else {
      // The thousand files of a new cluster would be written to the disk one by one.
      const noSync = isDurable ? [] : ["--no-sync"];
      await run(binaries.initdb, ["-D", dir, ...INITDB_ARGS, `--pwfile=${passwordFile}`, ...noSync]);
      if (pattern !== null) await keepPattern(pattern, dir);
    }
    renameSync(passwordFile, join(dir, "berth-password"));
  } finally {
    rmSync(passwordFile, { force: true });
  }
}

/** Runs a program of Postgres under its account, and resolves when it has ended without an error. */
type Run = (program: string, args: readonly string[], input?: string) => Promise<void>;

function runnerIn(dir: string, user: PostgresUser | null): Run {
  const ids = user === null ? {} : { uid: user.uid, gid: user.gid };
  return async (program, args, input = "") => {
    const running = promisify(execFile)(program, args, {
      ...ids,
      cwd: dir,
      env: { PATH: process.env.PATH, LC_ALL: "C" },
    });
    // A program that has ended early reads no input. Its exit code says why.
    running.child.stdin?.on("error", () => undefined);
    running.child.stdin?.end(input);
    const { stderr } = await running.catch((error: Error & { stderr?: string }) => {
      throw new EmbeddedError("cannot-start", `${basename(program)} failed: ${(error.stderr || error.message).trim()}`);
    });
    // A server for single statements ends with exit code 0 even when one of them has failed.
    if (/ (ERROR|FATAL): /.test(stderr)) {
      throw new EmbeddedError("cannot-start", `${basename(program)} failed: ${stderr.trim()}`);
    }
  };
}

/** Changes the password of a cluster that is not being served. */
function setPassword(run: Run, binaries: Binaries, dir: string, password: string): Promise<void> {
  const settings = Object.entries(ONE_STATEMENT).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const args = ["--single", "-F", "-D", dir, ...settings, "postgres"];
  return run(binaries.postgres, args, `alter role ${EMBEDDED_ROLE} password '${password}'\n`);
}
