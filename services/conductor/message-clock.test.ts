import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { createLogger } from "../../runtime/logger.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { ConductorEvents } from "./events.ts";
import { MessageClock } from "./message-clock.ts";

const FRESH_MS = 500;

/** A message clock with its log, and a count of the messages that were not fresh. */
function setUp() {
  const clock = new ManualClock(1_000_000);
  const registry = new Registry();
  const log: string[] = [];
  const stream = { write: (line: string) => void log.push(JSON.parse(line).msg) };
  const logger = createLogger({ name: "test", level: "info", stream });
  const events = new ConductorEvents({ logger, registry, clock, taskCount: () => 0 });
  const messages = new MessageClock(clock, events, FRESH_MS);
  return {
    ...{ clock, log },
    /** One message a second, which NATS stored so long ago by this clock. Returns which of them are fresh. */
    see(count: number, ageMs: number) {
      return Array.from({ length: count }, () => {
        clock.advance(1_000);
        return messages.isFresh(clock.now() - ageMs);
      });
    },
    async unusable() {
      const metric = await registry.getSingleMetric("berth_conductor_told_unusable_total")?.get();
      return Object.fromEntries((metric?.values ?? []).map(({ labels, value }) => [labels.reason, value]));
    },
  };
}

test("messages whose time is near the clock's are fresh, and nothing is said", async () => {
  const { see, log, unusable } = setUp();
  expect([...see(2, FRESH_MS), ...see(2, -FRESH_MS)]).toEqual([true, true, true, true]);
  expect(log).toEqual([]);
  expect(await unusable()).toEqual({});
});

test("a message from the future is warned of once, with the difference, and counted each time", async () => {
  const { see, log, unusable } = setUp();
  expect(see(3, -1_740)).toEqual([false, false, false]);
  expect(log).toEqual([
    expect.stringMatching(/^the clock of NATS is ahead of this conductor's by 1\.7 s .*synchronise/),
  ]);
  expect(await unusable()).toEqual({ future: 3 });
});

test("messages that are all old for a while are warned of once, with the least age", async () => {
  const { see, log, unusable } = setUp();
  see(10, 1_500);
  see(1, 1_240);
  see(19, 4_000);
  expect(log).toEqual([]);
  see(30, 1_500);
  expect(log).toEqual([expect.stringMatching(/seemed to be older than 1\.2 s.*synchronise/)]);
  expect(await unusable()).toEqual({ old: 60 });
});

test("old messages after a stall are no sign that clocks differ, because fresh ones follow", async () => {
  const { see, log, unusable } = setUp();
  for (let stall = 0; stall < 4; stall += 1) {
    see(20, 3_000);
    see(1, 20);
  }
  expect(log).toEqual([]);
  expect(await unusable()).toEqual({ old: 80 });
});

test("one line tells when clocks agree again, and the next difference is warned of again, but no flutter around the limit", () => {
  const { see, log } = setUp();
  for (let flutter = 0; flutter < 20; flutter += 1) {
    see(1, -FRESH_MS - 1);
    see(5, -FRESH_MS);
  }
  expect(log).toHaveLength(1);
  see(60, 0);
  expect(log.slice(1)).toEqual([expect.stringContaining("agree with this conductor's clock again")]);
  see(2, -FRESH_MS - 1);
  expect(log.slice(2)).toEqual([expect.stringContaining("is ahead of this conductor's by 0.5 s")]);
});

test("a clock that is set right by too much is warned of again, since the difference has another direction", async () => {
  const { see, log } = setUp();
  see(3, -1_740);
  see(20, 2_500);
  expect(log).toHaveLength(1);
  see(20, 2_500);
  see(1, -900);
  expect(log).toEqual([
    expect.stringContaining("is ahead of this conductor's by 1.7 s"),
    expect.stringContaining("seemed to be older than 2.5 s"),
    expect.stringContaining("is ahead of this conductor's by 0.9 s"),
  ]);
});
