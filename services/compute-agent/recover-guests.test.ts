import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { noTracing } from "../../adapters/telemetry/tracing.ts";
import { createLogger } from "../../runtime/logger.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { AgentEvents } from "./events.ts";
import { recoverGuests } from "./recover-guests.ts";

type Deps = Parameters<typeof recoverGuests>[0];

/** Recovers this number of guests that were being built, and returns the log's lines. With a `fault`, the journal cannot be written. */
async function linesAfter(building: number, fault: Error | null = null): Promise<readonly Record<string, unknown>[]> {
  const lines: Record<string, unknown>[] = [];
  const stream = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const events = new AgentEvents({
    logger: createLogger({ name: "test", level: "debug", stream }),
    ...{ registry: new Registry(), tracing: noTracing, fail: () => {}, guestCount: () => 0 },
  });
  const guests = Array.from({ length: building }, (_, at) => ({
    ...{ host: "h", serverUuid: `server-${at}`, attemptId: `attempt-${at}`, state: "building" },
  }));
  const record = async () => {
    if (fault !== null) throw fault;
  };
  const deps = {
    store: { all: () => guests, isBuried: () => false, record },
    driver: { adopt: async () => {}, hostedGuests: async () => [] },
    ...{ hosts: [], signal: new AbortController().signal },
    remover: { remove: async () => null },
    observer: { correctAtStart: async () => {} },
    ...{ clock: new ManualClock(), events },
  };
  const recovered = recoverGuests(deps as unknown as Deps);
  if (fault === null) expect(await recovered).toEqual([]);
  else await expect(recovered).rejects.toThrow(fault);
  return lines;
}

test("all unfinished guests together give one warning with their number and a few servers; the rest is at debug", async () => {
  const lines = await linesAfter(32);
  const warnings = lines.filter(({ level }) => level !== "debug");
  expect(warnings).toMatchObject([{ level: "warn", count: 32, servers: ["server-0", "server-1", "server-2"] }]);
  expect(lines.filter(({ level }) => level === "debug")).toHaveLength(32);
});

test("guests that were removed are logged although their removal cannot be written to the journal", async () => {
  expect(await linesAfter(1, new Error("disk full"))).toMatchObject([
    { level: "debug", serverUuid: "server-0" },
    { level: "warn", count: 1, servers: ["server-0"] },
  ]);
});

test("an agent that has left nothing unfinished says nothing", async () => {
  expect(await linesAfter(0)).toEqual([]);
});
