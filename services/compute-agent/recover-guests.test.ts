import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { noTracing } from "../../adapters/telemetry/tracing.ts";
import { createLogger } from "../../runtime/logger.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { AgentEvents } from "./events.ts";
import { recoverGuests } from "./recover-guests.ts";

type Deps = Parameters<typeof recoverGuests>[0];

/** Recovers this number of guests that were being built, and returns the log's lines. */
async function linesAfter(building: number): Promise<readonly Record<string, unknown>[]> {
  const lines: Record<string, unknown>[] = [];
  const stream = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const events = new AgentEvents({
    logger: createLogger({ name: "test", level: "debug", stream }),
    ...{ registry: new Registry(), tracing: noTracing, fail: () => {}, guestCount: () => 0 },
  });
  const guests = Array.from({ length: building }, (_, at) => ({
    ...{ host: "h", serverUuid: `server-${at}`, attemptId: `attempt-${at}`, state: "building" },
  }));
  const deps = {
    store: { all: () => guests, isBuried: () => false, record: async () => {} },
    driver: { adopt: async () => {} },
    remover: { remove: async () => null },
    observer: { correctAtStart: async () => {} },
    ...{ clock: new ManualClock(), events },
  };
  expect(await recoverGuests(deps as unknown as Deps)).toEqual([]);
  return lines;
}

test("all unfinished guests together give one warning with their number and a few servers; the rest is at debug", async () => {
  const lines = await linesAfter(32);
  const warnings = lines.filter(({ level }) => level !== "debug");
  expect(warnings).toMatchObject([{ level: "warn", count: 32, servers: ["server-0", "server-1", "server-2"] }]);
  expect(lines.filter(({ level }) => level === "debug")).toHaveLength(32);
});

test("an agent that has left nothing unfinished says nothing", async () => {
  expect(await linesAfter(0)).toEqual([]);
});
