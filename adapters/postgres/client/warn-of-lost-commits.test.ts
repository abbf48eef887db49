import { Writable } from "node:stream";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { openLoggedPool } from "./logged-pool.ts";
import { lostCommits } from "./warn-of-lost-commits.ts";

const SYNCHRONOUS = { synchronous_commit: "on", synchronous_standby_names: "ANY 1 (a, b)", fsync: "on" };

test.each([
  [{}, null],
  [{ synchronous_commit: "remote_apply" }, null],
  [{ synchronous_standby_names: "" }, "synchronous_standby_names is empty, so no commit waits for a standby"],
  [{ synchronous_commit: "local" }, "synchronous_commit is local, so no commit waits for a standby"],
  [{ synchronous_commit: "off" }, "synchronous_commit is off, so no commit waits for a standby"],
  [{ fsync: "off" }, "fsync is off, so a crash of the server may lose commits"],
])("a server with %o: %s", (change, reason) => {
  expect(lostCommits({ ...SYNCHRONOUS, ...change })).toBe(reason);
});

describe("a service's pool", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await freshDatabase("cell");
  });
  afterAll(() => database.drop());

  /** Levels and databases of the warnings that a pool logged in use. */
  async function warningsOf(url: string): Promise<readonly string[]> {
    const lines: string[] = [];
    const destination = new Writable({
      write(chunk, _encoding, done) {
        lines.push(String(chunk));
        done();
      },
    });
    const pool = openLoggedPool({ url, applicationName: "test", what: "the cell", logger: pino(destination) });
    // Two queries at once open two connections.
    await Promise.all([pool.query("select pg_sleep(0.05)"), pool.query("select pg_sleep(0.05)")]);
    await eventually("its connections to be idle", () => pool.idleCount === pool.totalCount);
    await pool.end();
    return lines;
  }

  test("warns once when its URL names several servers and no commit waits for a standby", async () => {
    const { port } = new URL(database.url);
    const several = database.url.replace(`:${port}/`, `:${port},127.0.0.1:${port}/`);
    const warnings = await warningsOf(several);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain("synchronous_standby_names is empty");
    expect(warnings[0]).toContain('"database":"the cell"');
  });

  test("says nothing of a single server", async () => {
    expect(await warningsOf(database.url)).toEqual([]);
  });
});
