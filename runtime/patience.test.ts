import { expect, test, vi } from "vitest";
import { BusError } from "./bus.ts";
import type { Logger } from "./logger.ts";
import { ManualClock } from "./manual-clock.ts";
import { Patience } from "./patience.ts";

class Away extends Error {}

function patient() {
  const clock = new ManualClock();
  const warn = vi.fn();
  const logger = { warn } as unknown as Logger;
  const patience = new Patience({ logger, isTransient: (error) => error instanceof Away, clock });
  /** Lets the current pause end. */
  const goOn = async (byMs = 5_000) => {
    await expect.poll(() => clock.pending).toBe(1);
    clock.advance(byMs);
  };
  return { patience, warn, clock, goOn };
}

test("asks until there is an answer, and logs this at first and then at intervals", async () => {
  const { patience, warn, goOn } = patient();
  let tries = 0;
  const answer = patience.until("the database", async () => {
    tries += 1;
    if (tries < 12) throw new Away("refused");
    return "served";
  });
  expect(patience.waitingFor).toEqual([]);
  for (let pauses = 0; pauses < 11; pauses += 1) {
    await goOn();
    expect(patience.waitingFor).toEqual(["the database"]);
  }
  expect(await answer).toBe("served");
  expect(patience.waitingFor).toEqual([]);
  // The log lines come at 0 and 30 s: eleven failures in 55 s are two lines.
  expect(warn.mock.calls.map(([, text]) => text)).toEqual(
    Array(2).fill("the process is not ready yet, because it is waiting for the database"),
  );
});

test("waits for the bus as well, unless it refuses this user", async () => {
  const { patience, clock, goOn } = patient();
  let error: Error | null = new BusError("timeout", "tasks", "no connection");
  const work = async () => {
    if (error !== null) throw error;
  };
  const answer = patience.until("the bus", work);
  await expect.poll(() => clock.pending).toBe(1);
  error = null;
  await goOn();
  await answer;
  error = new BusError("not-permitted", "tasks", "publish");
  await expect(patience.until("the bus", work)).rejects.toBe(error);
});

test("an error that waiting cannot solve rejects at once", async () => {
  const { patience, warn } = patient();
  await expect(
    patience.until("the database", async () => Promise.reject(new Error("password refused"))),
  ).rejects.toThrow("password refused");
  expect(warn).not.toHaveBeenCalled();
});

test("a service that is closed while it waits gives up with the last error", async () => {
  const { patience, clock } = patient();
  const answer = patience.until("the database", async () => Promise.reject(new Away("refused")));
  await expect.poll(() => clock.pending).toBe(1);
  patience.giveUp();
  await expect(answer).rejects.toThrow("refused");
});
