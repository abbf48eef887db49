import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";
import { withClient } from "../client/databases.ts";
import { type EmbeddedOptions, type EmbeddedPostgres, startEmbedded } from "./embedded.ts";
import { EmbeddedError } from "./embedded-error.ts";
import { canEnter, choosePostgresUser, type PostgresUser } from "./embedded-user.ts";

const FOLLOWS_MS_MAX = 60_000;
const POLL_MS = 20;
/** Files that are the other server's own: its identity, its slots, and its settings from `alter system`. */
const NOT_COPIED = ["postmaster.pid", "postmaster.opts", "backup_label", "postgresql.auto.conf", "pg_replslot"];

/**
 * Starts a server that follows `primary` by streaming replication, on a copy of the primary's files taken while it runs, and resolves when
 * it follows. With `synchronous`, the primary from then on acknowledges a commit only when the standby has it on disk, too, and
 * acknowledges none while there is no standby. `options` are those of the primary. Throws EmbeddedError.
 */
export async function startStandby(
  primary: EmbeddedPostgres,
  options: EmbeddedOptions & { readonly dataDir: string; readonly synchronous: boolean },
): Promise<EmbeddedPostgres> {
  const { synchronous, ...embedded } = options;
  const user = choosePostgresUser();
  await copyCluster(primary, options.dataDir, user);
  const { port, username, password } = new URL(primary.url("postgres"));
  const standby = await startEmbedded({
    ...embedded,
    settings: {
      ...embedded.settings,
      primary_conninfo: `host=127.0.0.1 port=${port} user=${username} password=${password} application_name=standby`,
    },
  });
  try {
    await withClient(primary.url("postgres"), async (client) => {
      await untilFollowed(client, "state = 'streaming'");
      if (!synchronous) return;
      await client.query("alter system set synchronous_standby_names = '*'");
      await client.query("select pg_reload_conf()");
      // The reload was only requested. Until it happens, commits are acknowledged that the standby lacks.
      await untilFollowed(client, "sync_state = 'sync'");
    });
  } catch (error) {
    await standby.stop();
    throw error;
  }
  return standby;
}

/** Makes the standby an independent server that accepts writes. Its old primary must not run then, nor be started again. */
export async function promoteStandby(standby: EmbeddedPostgres): Promise<void> {
  await withClient(standby.url("postgres"), async (client) => {
    const { rows } = await client.query<{ promoted: boolean }>("select pg_promote(true, 60) as promoted");
    if (rows[0]?.promoted !== true) throw new EmbeddedError("cannot-start", "the standby was not promoted within 60 s");
  });
}

/** Copies the files as pg_basebackup does, which the npm package lacks. Files that change during the copy are repaired from the log. */
async function copyCluster(primary: EmbeddedPostgres, dataDir: string, user: PostgresUser | null): Promise<void> {
  const cluster = join(dataDir, "cluster");
  mkdirSync(dataDir, { recursive: true });
  if (user !== null) {
    chmodSync(dataDir, 0o711);
    if (!canEnter(dataDir, user))
      throw new EmbeddedError(
        "cannot-start",
        `${user.name} cannot enter ${dataDir}: give that user the right to enter the directories above it`,
      );
  }
  const own = (path: string) => user !== null && chownSync(path, user.uid, user.gid);
  mkdirSync(cluster, { mode: 0o700 });
  own(cluster);
  const write = (name: string, content: string) => {
    writeFileSync(join(cluster, name), content, { mode: 0o600 });
    own(join(cluster, name));
  };
  await withClient(primary.url("postgres"), async (client) => {
    await client.query("select pg_backup_start('standby', fast => true)");
    await copyFiles(realpathSync(join(primary.dataDir, "cluster")), cluster, user);
    const { rows } = await client.query<{ labelfile: string }>(
      "select labelfile from pg_backup_stop(wait_for_archive => false)",
    );
    write("backup_label", rows[0]?.labelfile ?? "");
  });
  mkdirSync(join(cluster, "pg_replslot"), { mode: 0o700 });
  own(join(cluster, "pg_replslot"));
  write("postgresql.auto.conf", "");
  write("standby.signal", "");
}

async function copyFiles(from: string, to: string, user: PostgresUser | null): Promise<void> {
  const names = readdirSync(from).filter((name) => !NOT_COPIED.includes(name) && !name.startsWith(".s.PGSQL"));
  const ids = user === null ? {} : { uid: user.uid, gid: user.gid };
  const copy = spawn("cp", ["-a", ...names, to], { ...ids, cwd: from, stdio: "ignore" });
  // Its exit code reports files that vanished meanwhile, which is expected.
  await once(copy, "close");
  if (existsSync(join(to, "global/pg_control"))) return;
  rmSync(to, { recursive: true, force: true });
  throw new EmbeddedError("cannot-start", `the files of ${from} could not be copied`);
}

async function untilFollowed(client: pg.Client, how: "state = 'streaming'" | "sync_state = 'sync'"): Promise<void> {
  const deadline = performance.now() + FOLLOWS_MS_MAX;
  for (;;) {
    const { rowCount } = await client.query(`select from pg_stat_replication where ${how}`);
    if (rowCount !== 0) return;
    if (performance.now() > deadline)
      throw new EmbeddedError("cannot-start", "the standby does not follow the primary");
    await delay(POLL_MS);
  }
}
