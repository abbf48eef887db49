import { expect, test } from "vitest";
import { madeUpHistory } from "../../test/rigs/made-up-history.ts";
import { clientCalls } from "./client-calls.ts";
import { endOf } from "./fault-spans.ts";
import { serverLives } from "./server-lives.ts";
import { binWidthMs, requestBins, serverSamples } from "./timeline-bins.ts";

const history = madeUpHistory({ creates: 500, faults: [{ fault: "kill", target: "api", from: 10, to: 30 }] });
const calls = clientCalls(history);
const lives = serverLives(history, calls);
const endMs = endOf(history);

test("every request that was answered is in one bin, however long the run was", () => {
  for (const widthMs of [binWidthMs(endMs), 1, 1e9]) {
    const bins = requestBins({ calls, lives }, endMs, widthMs);
    const sum = bins.reduce((total, { ok, refused, unknown }) => total + ok + refused + unknown, 0);
    expect(sum).toBe(calls.filter(({ toMs }) => toMs !== null).length);
  }
});

test("a run is cut into few bins of a round width", () => {
  for (const ms of [1, 900, 60_000, 3_600_000, 1e10]) expect(Math.ceil(ms / binWidthMs(ms))).toBeLessThanOrEqual(120);
  expect(binWidthMs(60_000)).toBe(500);
});

test("the last sample has as many servers as are left", () => {
  const left = lives.filter(({ end, deleted }) => end !== null && deleted === null);
  const last = serverSamples(lives, endMs, 50).at(-1);
  expect(last).toMatchObject({
    building: 0,
    active: left.filter(({ end }) => end?.state === "ACTIVE").length,
    error: left.filter(({ end }) => end?.state === "ERROR").length,
  });
});

test("no number of servers is ever negative", () => {
  const samples = serverSamples(lives, endMs, 100);
  for (const { building, active, error } of samples)
    expect(Math.min(building, active, error)).toBeGreaterThanOrEqual(0);
});
