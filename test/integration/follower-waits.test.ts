import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { ReplicationStream } from "../../adapters/postgres/follower/replication-stream.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";
import { follow } from "./followed-cell.ts";

const SEEN_MS = 30_000;
let database: TestDatabase;

beforeAll(async () => {
  database = await freshDatabase("cell");
});
afterAll(() => database?.drop());

describe("a view that must load while transactions of other databases are open", () => {
  /** Runs `work` during a transaction that has written in another database of the same server. */
  async function whileAnotherDatabaseWrites(work: (pid: number, end: () => Promise<unknown>) => Promise<void>) {
    const url = new URL(database.url);
    url.pathname = "/postgres";
    const writer = new pg.Client({ connectionString: url.href, application_name: "forgotten" });
    await writer.connect();
    try {
      await writer.query("begin");
      const { rows } = await writer.query<{ pid: number }>("select pg_backend_pid() as pid, pg_current_xact_id()");
      await work(rows[0]!.pid, () => writer.query("rollback"));
    } finally {
      await writer.end();
    }
  }

  it("names the transaction of another database that delays the load, and loads once that has ended", async () => {
    await whileAnotherDatabaseWrites(async (pid, end) => {
      const followed = follow(database.url);
      onTestFinished(() => followed.follower.close());
      await expect.poll(() => followed.waited.length, { timeout: SEEN_MS }).toBeGreaterThan(0);
      const named = expect.stringMatching(
        new RegExp(`pid ${pid} \\(forgotten, user .*, database postgres, transaction open for \\d+ s\\)`),
      );
      expect(followed.waited[0]).toEqual(named);
      expect(followed.follower.obstacle).toEqual(named);
      await end();
      await followed.follower.waitUntilSeen(SEEN_MS);
      expect(followed.follower.obstacle).toBeNull();
    });
  });

  it("gives up a slot that cannot be made in time, and names the transaction that it waits for", async () => {
    await whileAnotherDatabaseWrites(async (pid) => {
      const opening = ReplicationStream.open(database.url, "berth_view_late", new AbortController().signal, {
        slotMsMax: 2_000,
      });
      await expect(opening).rejects.toThrow(new RegExp(`no replication slot within 2 s.*pid ${pid} `));
    });
  });
});
