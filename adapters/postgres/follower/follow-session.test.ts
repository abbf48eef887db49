import pg from "pg";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { withClient } from "../client/databases.ts";
import { FollowSession, type SessionHandlers } from "./follow-session.ts";
import { ReplicationStream } from "./replication-stream.ts";

const HANDLERS: SessionHandlers = {
  ...{ servers: false, onLoading: () => {}, onLoaded: () => {}, onChanges: () => {}, onCommitted: () => {} },
  ...{ onReached: () => {}, onPosition: () => {}, onLost: () => {} },
};

let database: TestDatabase;
beforeAll(async () => {
  database = await freshDatabase("cell");
});
afterAll(() => database?.drop());
afterEach(() => vi.restoreAllMocks());

test("questions and pushes that come while another is under way wait for it, and pushes do not pile up behind a slow one", async () => {
  const session = await FollowSession.open(database.url, HANDLERS, new AbortController().signal);
  try {
    const query: (...call: unknown[]) => Promise<unknown> = pg.Client.prototype.query;
    const asked: string[] = [];
    let [running, most] = [0, 0];
    vi.spyOn(pg.Client.prototype, "query").mockImplementation(function (this: pg.Client, ...call: unknown[]) {
      asked.push(/push|emit/.test(String(call[0])) ? "push" : "position");
      running += 1;
      most = Math.max(most, running);
      return query.apply(this, call).finally(() => {
        running -= 1;
      });
    });
    // The position follows the log of the whole database server, in which other tests write meanwhile.
    const before = session.position;
    const pushes = Array.from({ length: 5 }, () => session.pushLog());
    const positions = await Promise.all([session.askPosition(), session.askPosition()]);
    await Promise.all(pushes);
    expect(positions.every((position) => position >= before)).toBe(true);
    expect([asked, most]).toEqual([["push", "position", "position"], 1]);
    await session.pushLog();
    expect(asked).toHaveLength(4);
  } finally {
    await session.close();
  }
});

test("a transaction without rows of the view tells when it was committed, and is not counted", async () => {
  const heard: string[] = [];
  const reached = Promise.withResolvers<number>();
  const handlers = { ...HANDLERS, onCommitted: () => void heard.push("committed"), onReached: reached.resolve };
  const session = await FollowSession.open(database.url, handlers, new AbortController().signal);
  try {
    await session.pushLog();
    expect(await reached.promise).toBeGreaterThan(Date.UTC(2020, 0));
    expect(heard).toEqual([]);
  } finally {
    await session.close();
  }
});

test("the servers of a large cell are loaded in parts, between which the process answers others", async () => {
  const servers = 2_500;
  await withClient(database.url, async (client) => {
    await client.query("set session_replication_role = replica");
    await client.query(
      `insert into servers (uuid, status, spec, project_id, user_id, name, host, attempt_id, created_at)
       select gen_random_uuid(), 'ACTIVE', '', '', '', '', 'a host', '', now() from generate_series(1, ${servers})`,
    );
  });
  const parts: number[] = [];
  let [turns, loaded] = [0, 0];
  const countTurns = (): void => {
    turns += 1;
    if (loaded === 0) setImmediate(countTurns);
  };
  const handlers: SessionHandlers = {
    ...{ ...HANDLERS, servers: true },
    onLoading(changes) {
      const found = changes.filter(({ kind }) => kind === "server-put");
      if (found.length === 0) return;
      if (parts.length > 0) expect(turns).toBeGreaterThan(0);
      turns = 0;
      parts.push(found.length);
    },
    onLoaded() {
      loaded += 1;
    },
  };
  countTurns();
  const session = await FollowSession.open(database.url, handlers, new AbortController().signal);
  await session.close();
  expect([parts, loaded]).toEqual([[1_000, 1_000, 500], 1]);
});

test("a server that answers nothing, since it reads what nobody follows, sends a word within half of its patience", async () => {
  const { signal } = new AbortController();
  const stream = await ReplicationStream.open(database.url, "berth_view_quiet", signal, { serverPatienceMs: 8_000 });
  const asked = Promise.withResolvers<void>();
  try {
    const handlers = {
      onPayload: () => undefined,
      onKeepalive: (_: unknown, replyWanted: boolean) => void (replyWanted && asked.resolve()),
      onEnd: asked.reject,
    };
    await stream.start({ publications: ["berth_ledger_rows"], messages: true }, handlers);
    await asked.promise;
  } finally {
    await stream.close();
  }
});
