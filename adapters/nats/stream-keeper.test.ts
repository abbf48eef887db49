import type { NatsConnection } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import type { NatsEvent, NatsLink } from "./nats-link.ts";
import { StreamKeeper } from "./stream-keeper.ts";
import { apiStreams } from "./streams.ts";

/** Longer than the pause before a check that has a reason, and far shorter than the time between routine checks. */
const SOON_MS = 1_000;

/** A connection whose requests wait until the test answers them with `true` (it exists) or `false` (it does not). */
function heldConnection() {
  const asked: { readonly subject: string; readonly answer: (isThere: boolean) => void }[] = [];
  const request = (subject: string) =>
    new Promise((resolve) => {
      const missing = { error: { code: 404, err_code: 10_014, description: "consumer not found" } };
      const dataOf = (answer: object) => ({ data: new TextEncoder().encode(JSON.stringify(answer)) });
      asked.push({ subject, answer: (isThere) => resolve(dataOf(isThere ? { config: {} } : missing)) });
    });
  const features = { get: () => ({ ok: true, min: "2.9.0" }) };
  return { asked, connection: { request, features, options: {} } as unknown as NatsConnection };
}

function keeping() {
  const clock = new ManualClock();
  const events: NatsEvent["kind"][] = [];
  const link = { attach: () => {}, detach: () => {}, whenUp: () => new Promise(() => {}) } as unknown as NatsLink;
  const keeper = new StreamKeeper({ link, clock, timeoutMs: 1_000, onEvent: ({ kind }) => events.push(kind) });
  void keeper.ensure(apiStreams);
  return { clock, events, keeper };
}

const next = async ({ asked }: ReturnType<typeof heldConnection>, subject: RegExp) => {
  const request = await eventually(`a request of ${subject}`, () => asked.shift());
  expect(request.subject).toMatch(subject);
  return request;
};

test("a loss that is noticed while a check is under way causes another check soon", async () => {
  const { clock, events, keeper } = keeping();
  const held = heldConnection();
  keeper.onUp(held.connection);
  clock.advance(0);
  (await next(held, /STREAM.CREATE/)).answer(true);
  (await next(held, /CONSUMER/)).answer(true);
  await eventually("the next look to be set", () => {
    if (held.asked.length === 0) clock.advance(SOON_MS);
    return held.asked.length > 0;
  });
  const look = await next(held, /CONSUMER.INFO/);
  // The consumer existed when the server looked, and is lost before the answer arrives.
  keeper.suspect();
  look.answer(true);
  await eventually("that look to end", async () => {
    await Promise.resolve();
    clock.advance(SOON_MS / 10);
    return held.asked.length > 0 || clock.monotonic() > 60_000;
  });
  expect(clock.monotonic()).toBeLessThan(20_000);
  (await next(held, /CONSUMER.INFO/)).answer(false);
  (await next(held, /STREAM.CREATE/)).answer(true);
  (await next(held, /CONSUMER/)).answer(true);
  await eventually("it to be made again", () => events.includes("streams-made"));
  await keeper.close();
});

test("a connection that comes while a check of the previous one is under way is checked soon", async () => {
  const { clock, keeper } = keeping();
  const [first, second] = [heldConnection(), heldConnection()];
  keeper.onUp(first.connection);
  clock.advance(0);
  const stream = await next(first, /STREAM.CREATE/);
  keeper.onDown();
  keeper.onUp(second.connection);
  stream.answer(true);
  (await next(first, /CONSUMER/)).answer(true);
  // Everything is ensured there, as after every connection. The answers of the first connection say nothing about the server that serves
  // now.
  await eventually("the second to be asked", () => {
    clock.advance(0);
    return second.asked.length > 0;
  });
  (await next(second, /STREAM.CREATE/)).answer(true);
  (await next(second, /CONSUMER/)).answer(true);
  await keeper.close();
});
