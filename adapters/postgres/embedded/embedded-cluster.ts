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
import { dirname, join } from "node:path";
import { promisify } from "node:util";
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
  mkdirSync(dataDir, { recursive: true });
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
    await runInitdb(dir, user, binaries, isDurable);
    if (home === dataDir) renameSync(dir, place);
    else symlinkSync(dir, place);
  } catch (error) {
    rmSync(dir, { recursive: true, force: true });
    if (!existsSync(place)) throw error;
  }
}

async function runInitdb(
  dir: string,
  user: PostgresUser | null,
  binaries: Binaries,
  isDurable: boolean,
): Promise<void> {
  const password = randomBytes(24).toString("base64url");
  const passwordFile = `${dir}.password`;
  writeFileSync(passwordFile, password, { mode: 0o600 });
  try {
    if (user !== null) for (const path of [dir, passwordFile]) chownSync(path, user.uid, user.gid);
    const args = [
      "-D",
      dir,
      "-U",
      EMBEDDED_ROLE,
      "-E",
      "UTF8",
      "--no-locale",
      "--auth=scram-sha-256",
      `--pwfile=${passwordFile}`,
    ];
    // 24 random bytes need no key stretching. The default of 4,096 rounds would cost 5 ms on each side of each new connection.
    args.push("-c", "scram_iterations=1", "--no-instructions");
    // The thousand files of a new cluster would be written to the disk one by one.
    if (!isDurable) args.push("--no-sync");
    const ids = user === null ? {} : { uid: user.uid, gid: user.gid };
    await promisify(execFile)(binaries.initdb, args, {
      ...ids,
      cwd: dir,
      env: { PATH: process.env.PATH, LC_ALL: "C" },
    }).catch((error: Error & { stderr?: string }) => {
      throw new EmbeddedError("cannot-start", `initdb failed: ${(error.stderr || error.message).trim()}`);
    });
    renameSync(passwordFile, join(dir, "berth-password"));
  } finally {
    rmSync(passwordFile, { force: true });
  }
}
