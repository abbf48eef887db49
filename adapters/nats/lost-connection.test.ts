import type { NatsConnection } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { ManualClock } from "../../runtime/manual-clock.ts";
import type { LinkUser, NatsLink } from "./nats-link.ts";
import { NatsPublisher } from "./nats-publisher.ts";
import { NatsPuller } from "./nats-puller.ts";
import { StoreRoom } from "./store-room.ts";

const ignore = (): void => undefined;

/** A connection like the driver's. While it is closing, it throws when someone subscribes. */
function fakeConnection() {
  const state = { closed: false, subscribed: 0 };
  const connection = {
    isClosed: () => state.closed,
    flush: async () => undefined,
    closed: () => new Promise(() => undefined),
    publish: () => undefined,
    subscribe: () => {
      if (state.closed) throw new Error("closed connection");
      state.subscribed += 1;
      return { unsubscribe: () => undefined, isClosed: () => state.closed, drain: async () => undefined };
    },
  };
  return { state, connection: connection as unknown as NatsConnection };
}

function linkOf(connection: NatsConnection): { readonly link: NatsLink; readonly users: LinkUser[] } {
  const users: LinkUser[] = [];
  const attach = (user: LinkUser) => {
    users.push(user);
    user.onUp(connection);
  };
  return { link: { attach, detach: () => undefined, inboxPrefix: "_INBOX" } as unknown as NatsLink, users };
}

test("a puller that checks its pulls while its connection is closing waits for the next connection", async () => {
  const clock = new ManualClock();
  const [lost, next] = [fakeConnection(), fakeConnection()];
  const { link, users } = linkOf(lost.connection);
  const name = { stream: "TASKS", consumer: "conductors" };
  const limits = { maxInFlight: 10, ackWaitMs: 1_000 };
  const puller = new NatsPuller({ link, clock, name, ...limits, onMessage: ignore, onUnanswered: ignore });
  await puller.start();
  expect(lost.state.subscribed).toBe(1);
  lost.state.closed = true;
  clock.advance(120_000);
  for (const user of users) {
    user.onDown();
    user.onUp(next.connection);
  }
  expect([lost.state.subscribed, next.state.subscribed]).toEqual([1, 1]);
  await puller.stop();
});

test("a publisher that gets a connection which is already lost waits for the next one", () => {
  const [lost, next] = [fakeConnection(), fakeConnection()];
  lost.state.closed = true;
  const { link, users } = linkOf(lost.connection);
  const clock = new ManualClock();
  const room = new StoreRoom(clock, ignore);
  const publisher = new NatsPublisher({ link, clock, room, timeoutMs: 1_000, onUnanswered: ignore });
  for (const user of users) user.onUp(next.connection);
  expect(next.state.subscribed).toBe(1);
  publisher.close();
});
