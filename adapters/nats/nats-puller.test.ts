import type { Msg, NatsConnection } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { ManualClock } from "../../runtime/manual-clock.ts";
import type { LinkUser, NatsLink } from "./nats-link.ts";
import { NatsPuller } from "./nats-puller.ts";

interface Inbox {
  readonly subject: string;
  readonly deliver: (error: Error | null, message: Msg) => void;
  end: "" | "drained" | "unsubscribed";
}

/** A puller with a connection on which the test is the server, and a clock whose process can stand still. */
async function pullerAt() {
  const manual = new ManualClock();
  let stoodStillMs = 0;
  const clock = {
    now: () => manual.now() + stoodStillMs,
    monotonic: () => manual.monotonic() + stoodStillMs,
    setTimer: manual.setTimer.bind(manual),
  };
  const inboxes: Inbox[] = [];
  const pulls: number[] = [];
  const connection = {
    isClosed: () => false,
    flush: async () => undefined,
    closed: () => new Promise(() => undefined),
    publish: (_: string, body: string) => void pulls.push((JSON.parse(body) as { readonly batch: number }).batch),
    subscribe: (subject: string, { callback }: { readonly callback: Inbox["deliver"] }) => {
      const inbox: Inbox = { subject, deliver: callback, end: "" };
      inboxes.push(inbox);
      return {
        isClosed: () => inbox.end !== "",
        unsubscribe: () => {
          inbox.end = "unsubscribed";
        },
        drain: async () => {
          inbox.end = "drained";
        },
      };
    },
  } as unknown as NatsConnection;
  const attach = (user: LinkUser) => user.onUp(connection);
  const link = { attach, detach: () => undefined, inboxPrefix: "_INBOX" } as unknown as NatsLink;
  const taken: string[] = [];
  const puller = new NatsPuller({
    ...{ link, clock, maxInFlight: 10, ackWaitMs: 10_000, onUnanswered: () => undefined },
    name: { stream: "TASKS", consumer: "conductors" },
    onMessage: ({ data }) => void taken.push(new TextDecoder().decode(data)),
  });
  await puller.start();
  const send = (inbox: number, text: string) =>
    inboxes[inbox]?.deliver(null, { subject: "tasks", data: new TextEncoder().encode(text) } as Msg);
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const standStill = (ms: number) => {
    stoodStillMs += ms;
    manual.advance(500);
  };
  return { puller, manual, inboxes, pulls, taken, send, turn, standStill };
}

test("a puller whose process stood still does not take that for the server's silence, but later silence counts", async () => {
  const { puller, manual, inboxes, standStill } = await pullerAt();
  standStill(60_000);
  expect(inboxes.map(({ end }) => end)).toEqual([""]);
  manual.advance(3_000);
  expect(inboxes.map(({ end }) => end)).toEqual([""]);
  manual.advance(1_000);
  expect(inboxes.map(({ end }) => end)).toEqual(["drained", ""]);
  await puller.stop();
});

test("messages that are under way when a server counts as silent are taken, and no pull is counted for them", async () => {
  const { puller, manual, inboxes, pulls, taken, send, turn } = await pullerAt();
  manual.advance(3_500);
  expect(inboxes.map(({ end }) => end)).toEqual(["drained", ""]);
  expect(pulls).toEqual([10, 10]);
  send(0, "late");
  send(1, "next");
  await turn();
  expect(taken).toEqual(["late", "next"]);
  // Nine of the second pull are still to come, so that it is no time to ask for more.
  expect(pulls).toEqual([10, 10]);
  // What comes to the old inbox does not show that the server knows the second pull.
  manual.advance(3_000);
  send(0, "later");
  manual.advance(500);
  expect(inboxes.map(({ end }) => end)).toEqual(["drained", "drained", ""]);
  await puller.stop();
});
