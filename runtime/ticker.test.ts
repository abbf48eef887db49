import { expect, test } from "vitest";
import { eventually } from "../test/rigs/eventually.ts";
import { systemClock } from "./clock.ts";
import { Ticker } from "./ticker.ts";

test("continues after an error, never runs twice at once, and ends after the work under way", async () => {
  const errors: unknown[] = [];
  let runs = 0;
  let inside = 0;
  const ticker = new Ticker({
    clock: systemClock,
    pauseMs: 1,
    onError: (error) => errors.push(error),
    work: async () => {
      runs += 1;
      inside += 1;
      expect(inside).toBe(1);
      await new Promise((resolve) => setImmediate(resolve));
      inside -= 1;
      if (runs === 1) throw new Error("once");
    },
  });
  ticker.start();
  await eventually("a few runs", () => runs >= 3);
  await ticker.stop();
  const ended = runs;
  expect([inside, errors.length]).toEqual([0, 1]);
  await new Promise((resolve) => setTimeout(resolve, 10));
  expect(runs).toBe(ended);
});
