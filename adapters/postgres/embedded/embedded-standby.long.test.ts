import { chmodSync, mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../../../test/rigs/eventually.ts";
import { withClient } from "../client/databases.ts";
import { createPool } from "../client/pool.ts";
import { type EmbeddedPostgres, startEmbedded } from "./embedded.ts";
import { promoteStandby, startStandby } from "./embedded-standby.ts";

const SETTINGS = { shared_buffers: "16MB", max_connections: "30" };
let dir: string;
let running: EmbeddedPostgres[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "berth-standby-"));
  // Postgres's own account must be able to enter the directory.
  chmodSync(dir, 0o711);
  running = [];
});
afterEach(async () => {
  await Promise.all(running.map((one) => one.stop()));
  await rm(dir, { recursive: true, force: true });
});

const optionsOf = (name: string) => ({ dataDir: join(dir, name), durable: false, settings: SETTINGS });
const followed = async (primary: EmbeddedPostgres, name: string) => {
  const standby = await startStandby(primary, { ...optionsOf(name), synchronous: true });
  running.push(standby);
  return standby;
};
const insert = (postgres: EmbeddedPostgres, value: number) =>
  withClient(postgres.url("postgres"), (client) => client.query("insert into t values ($1)", [value]));
const values = (postgres: EmbeddedPostgres) =>
  withClient(postgres.url("postgres"), async (client) =>
    (await client.query<{ v: number }>("select v from t order by v")).rows.map(({ v }) => v),
  );

test("a promoted standby has everything that the primary committed, again and again", async () => {
  const first = await startEmbedded(optionsOf("first"));
  running.push(first);
  await withClient(first.url("postgres"), (client) => client.query("create table t (v int)"));
  const second = await followed(first, "second");
  await insert(first, 1);
  await expect(insert(second, 0)).rejects.toThrow(/read-only/);
  await first.kill();
  await promoteStandby(second);
  await insert(second, 2);

  const third = await followed(second, "third");
  await insert(second, 3);
  await second.kill();
  await promoteStandby(third);
  await insert(third, 4);
  expect(await values(third)).toEqual([1, 2, 3, 4]);
});

test("a standby is synchronous as soon as it exists, not some time later", async () => {
  const first = await startEmbedded(optionsOf("first"));
  running.push(first);
  await followed(first, "second");
  const { rows } = await withClient(first.url("postgres"), (client) =>
    client.query("select sync_state from pg_stat_replication"),
  );
  expect(rows).toEqual([{ sync_state: "sync" }]);
});

test("clients do not continue with an old primary that is still running beside its successor", async () => {
  const first = await startEmbedded(optionsOf("first"));
  running.push(first);
  const second = await followed(first, "second");
  const hosts = `127.0.0.1:${first.port},127.0.0.1:${second.port}`;
  const url = first.url("postgres").replace(`127.0.0.1:${first.port}`, hosts);
  const pool = createPool({ url, applicationName: "old", connectionsMax: 2 });
  try {
    const ports = async () => {
      const clients = [await pool.connect(), await pool.connect()];
      const asked = clients.map((client) => client.query<{ port: number }>("select inet_server_port() as port"));
      const answers = await Promise.allSettled(asked);
      for (const client of clients) client.release();
      return answers.flatMap((answer) =>
        answer.status === "fulfilled" ? answer.value.rows.map(({ port }) => port) : [],
      );
    };
    expect(await ports()).toEqual([first.port, first.port]);
    await promoteStandby(second);
    // One connection is lost. The other one stays, and so does the old primary.
    await withClient(first.url("postgres"), (client) =>
      client.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'old' limit 1"),
    );
    await eventually("both connections to be to the new primary", async () =>
      (await ports()).every((port, _, all) => port === second.port && all.length === 2),
    );
  } finally {
    await pool.end();
  }
});

test("a server that was killed is restarted on its files", async () => {
  const first = await startEmbedded(optionsOf("first"));
  await withClient(first.url("postgres"), (client) => client.query("create table t (v int)"));
  await insert(first, 1);
  await first.kill();
  const again = await startEmbedded(optionsOf("first"));
  running.push(again);
  expect(again.port).toBe(first.port);
  expect(await values(again)).toEqual([1]);
});

test("a server that was paused answers when it resumes", async () => {
  const server = await startEmbedded(optionsOf("first"));
  running.push(server);
  await withClient(server.url("postgres"), (client) => client.query("create table t (v int)"));
  server.pause();
  let done = false;
  const inserting = insert(server, 1).then(() => {
    done = true;
  });
  expect(done).toBe(false);
  server.resume();
  await inserting;
  expect(await values(server)).toEqual([1]);
});
