import { expect, test } from "vitest";
import { VirtualClock } from "../../sim/virtual-clock.ts";
import { callDriver } from "./call-driver.ts";

/** A driver call that the test ends, with its recorded outcome. */
function begin(signal = new AbortController().signal) {
  const clock = new VirtualClock(0);
  const ended = Promise.withResolvers<string>();
  const seen = { raised: null as AbortSignal | null, stuck: 0, outcome: "open" };
  const call = callDriver(
    (raised) => {
      seen.raised = raised;
      return ended.promise;
    },
    { signal, timeoutMs: 60_000, what: "the driver's stop", clock, onStuck: () => (seen.stuck += 1) },
  );
  const settled = call.then(
    (value) => (seen.outcome = value),
    (error: Error) => (seen.outcome = error.message),
  );
  return { clock, ended, seen, settled };
}

test("a call that exceeds its deadline is aborted, and is reported only after it has ended", async () => {
  const { clock, ended, seen, settled } = begin();
  clock.step(59_999);
  expect(seen.raised?.aborted).toBe(false);
  clock.step(60_000);
  await Promise.resolve();
  expect([seen.raised?.aborted, seen.outcome, seen.stuck]).toEqual([true, "open", 0]);
  clock.step(70_000);
  expect(seen.stuck).toBe(1);
  ended.reject(new Error("given up"));
  await settled;
  expect(seen.outcome).toBe("the driver's stop took longer than 60000 ms");
});

test("a cancelled call is aborted, but counts as done if the driver completes it anyway", async () => {
  const off = new AbortController();
  const { ended, seen, settled } = begin(off.signal);
  off.abort(new Error("a later order was given"));
  expect([seen.raised?.aborted, seen.outcome]).toEqual([true, "open"]);
  ended.resolve("done");
  await settled;
  expect(seen.outcome).toBe("done");
});

test("a call that fails by itself reports why", async () => {
  const { ended, seen, settled } = begin();
  ended.reject(new Error("the device is busy"));
  await settled;
  expect([seen.outcome, seen.raised?.aborted]).toEqual(["the device is busy", false]);
});
