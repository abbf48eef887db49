import { once } from "node:events";
import { MessageChannel } from "node:worker_threads";
import { afterEach, expect, test, vi } from "vitest";
import { LedgerView } from "../../../core/ledger/ledger-view.ts";
import { type Clock, systemClock } from "../../../runtime/clock.ts";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { FollowSession, type SessionHandlers } from "./follow-session.ts";
import { LedgerFollower } from "./ledger-follower.ts";
import type { Lsn } from "./lsn.ts";

afterEach(() => vi.restoreAllMocks());

interface Opening extends PromiseWithResolvers<FollowSession> {
  readonly handlers: SessionHandlers;
  readonly session: FollowSession;
}

/** A follower whose sessions open when the test tells them to, and whose clock the test advances unless it brings one. */
function setUp(ownClock?: Clock) {
  const clock = new ManualClock();
  const openings: Opening[] = [];
  vi.spyOn(FollowSession, "open").mockImplementation((_url, handlers) => {
    const session = {
      position: 1,
      askPosition: async () => 1,
      askKeepalive: () => {},
      beat: () => true,
      close: vi.fn(async () => {}),
    };
    const opening = {
      ...Promise.withResolvers<FollowSession>(),
      handlers,
      session: session as unknown as FollowSession,
    };
    openings.push(opening);
    return opening.promise;
  });
  const lost: string[] = [];
  const faults: unknown[] = [];
  const events = {
    loaded: () => {},
    lost: (_cell: string, error: Error) => void lost.push(error.message),
    handlerFailed: (_cell: string, error: unknown) => void faults.push(error),
  };
  const view = new LedgerView();
  const follower = new LedgerFollower({ cell: "c", databaseUrl: "", view, clock: ownClock ?? clock, events });
  follower.start();
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  return { openings, clock, lost, faults, follower, settled };
}

test("a session lost while it opens counts as one loss, and no other session opens before it has ended", async () => {
  const { openings, clock, lost, follower, settled } = setUp();
  openings[0]?.handlers.onLost(new Error("reset"));
  clock.advance(1_000);
  expect(openings).toHaveLength(1);
  openings[0]?.reject(new Error("reset"));
  await settled();
  clock.advance(100);
  openings[1]?.resolve(openings[1].session);
  await settled();
  clock.advance(10_000);
  await follower.waitUntilSeen(1_000);
  expect([openings.length, lost, follower.ready]).toEqual([2, ["reset"], true]);
});

test("a session that is lost before its opener gets it is closed, and the next one is followed", async () => {
  const { openings, clock, lost, follower, settled } = setUp();
  openings[0]?.handlers.onLost(new Error("reset"));
  openings[0]?.resolve(openings[0].session);
  await settled();
  expect(openings[0]?.session.close).toHaveBeenCalled();
  clock.advance(100);
  openings[1]?.resolve(openings[1].session);
  await settled();
  expect([lost, follower.ready]).toEqual([["reset"], true]);
});

test("a caller learns whether the view had shown everything at the call already, which no view that was loaded again is known to have", async () => {
  const { openings, clock, follower, settled } = setUp();
  const follow = async (opening: Opening | undefined) => {
    opening?.resolve(opening.session);
    await settled();
  };
  await follow(openings[0]);
  expect(await follower.waitUntilSeen(1_000)).toBe(true);

  const { session, handlers } = openings[0]!;
  vi.spyOn(session, "askPosition").mockResolvedValue(2 as Lsn);
  const behind = follower.waitUntilSeen(1_000);
  await settled();
  session.position = 2 as Lsn;
  handlers.onPosition(session.position);
  expect([await behind, await follower.waitUntilSeen(1_000)]).toEqual([false, true]);

  const lost = follower.waitUntilSeen(1_000);
  handlers.onLost(new Error("reset"));
  clock.advance(100);
  await follow(openings[1]);
  expect(await lost).toBe(false);
});

test("a process that was busy until the deadline reads what the database has answered meanwhile before it gives up", async () => {
  const { openings, follower, settled } = setUp(systemClock);
  const { session, resolve } = openings[0]!;
  resolve(session);
  await settled();
  const { port1, port2 } = new MessageChannel();
  vi.spyOn(session, "askPosition").mockImplementation(async () => {
    await once(port2, "message");
    return session.position;
  });
  try {
    const seen = follower.waitUntilSeen(1);
    port1.postMessage("the position");
    const busyUntil = performance.now() + 5;
    while (performance.now() < busyUntil);
    expect(await seen).toBe(true);
  } finally {
    port1.close();
    await follower.close();
  }
});

test("a handler of applied transactions that throws stops neither the other handlers nor the follower", async () => {
  const { openings, lost, faults, follower, settled } = setUp();
  openings[0]?.resolve(openings[0].session);
  await settled();
  const fault = new Error("a claim that nobody knows");
  const applied: number[] = [];
  follower.onApplied(() => {
    throw fault;
  });
  follower.onApplied((xid) => applied.push(xid));
  for (const xid of [7, 8]) openings[0]?.handlers.onCommitted(xid);
  expect([applied, faults, lost, follower.ready]).toEqual([[7, 8], [fault, fault], [], true]);
});
