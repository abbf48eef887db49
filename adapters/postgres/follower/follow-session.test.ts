import pg from "pg";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { FollowSession, type SessionHandlers } from "./follow-session.ts";

const HANDLERS: SessionHandlers = {
  ...{ servers: false, onLoaded: () => {}, onChanges: () => {}, onCommitted: () => {}, onReached: () => {} },
  ...{ onPosition: () => {}, onLost: () => {} },
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
