import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { endPool } from "./end-pool.ts";
import { createPool } from "./pool.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await freshDatabase("cell");
});
afterAll(() => database.drop());

test("a pool that is not used keeps one connection and closes the others, so that the next call need not connect", async () => {
  const pool = createPool({ url: database.url, applicationName: "idle", idleMs: 20 });
  const session = async () => (await pool.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]?.pid;
  try {
    const clients = await Promise.all([pool.connect(), pool.connect(), pool.connect()]);
    const opened = await Promise.all(
      clients.map(
        async (client) => (await client.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]?.pid,
      ),
    );
    for (const client of clients) client.release();
    await eventually("the pool to close connections", async () => pool.totalCount <= 1);
    expect(opened).toContain(await session());
  } finally {
    await pool.end();
  }
});

test.runIf(process.platform === "linux")(
  "the kernel asks an idle connection's peer for a sign of life after seconds",
  async () => {
    const pool = createPool({ url: database.url, applicationName: "kept" });
    try {
      const answer = await pool.query<{ own: number; peers: number }>(
        "select inet_client_port() as own, inet_server_port() as peers",
      );
      const { own = 0, peers = 0 } = answer.rows[0] ?? {};
      const [ownEnd, peersEnd] = [own, peers].map((port) => `:${port.toString(16).toUpperCase().padStart(4, "0")}`);
      const timerOf = () => {
        const row = readFileSync("/proc/net/tcp", "utf8")
          .split("\n")
          .map((line) => line.trim().split(/\s+/))
          // An ended connection to another server may have had the same port.
          .find((cells) => cells[1]?.endsWith(ownEnd!) && cells[2]?.endsWith(peersEnd!));
        return (row?.[5] ?? "").split(":");
      };
      // Source: Linux, Documentation/networking/proc_net_tcp.rst: timer 2 is the one of keepalives, its rest is in hundredths of a second. Timer 1 runs while the
      // peer has not yet confirmed what it was sent last.
      await eventually("the timer of keepalives", () => timerOf()[0] === "02");
      expect(Number.parseInt(timerOf()[1] ?? "", 16)).toBeLessThanOrEqual(1_000);
    } finally {
      await pool.end();
    }
  },
);

test("a service that closes does not wait for a statement that the database does not answer", async () => {
  const pool = createPool({ url: database.url, applicationName: "held" });
  const holder = createPool({ url: database.url, applicationName: "holder" });
  const client = await holder.connect();
  try {
    await client.query("begin; lock table hosts");
    const held = pool.query("select from hosts").then(() => "answered");
    await eventually("the statement to wait", async () => {
      const waiting = "select from pg_stat_activity where application_name = 'held' and wait_event_type = 'Lock'";
      return ((await holder.query(waiting)).rowCount ?? 0) > 0;
    });
    await endPool(pool);
    await endPool(pool);
    expect(await Promise.race([held, "open"])).toBe("open");
    // The connection ends with its statement.
    await client.query("rollback");
    expect(await held).toBe("answered");
    await eventually("the connection to end", () => pool.totalCount === 0);
  } finally {
    client.release();
    await holder.end();
  }
});
