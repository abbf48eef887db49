import { expect, test } from "vitest";
import { GuestChains } from "./guest-chains.ts";
import type { GuestName } from "./journal.ts";

const ONE: GuestName = { host: "h", serverUuid: "s", attemptId: "t/0" };
const TWO: GuestName = { ...ONE, attemptId: "t/1" };

test("work on one guest runs in order even after a failure, and guests do not wait for each other", async () => {
  const chains = new GuestChains();
  const seen: string[] = [];
  const first = Promise.withResolvers<void>();
  const failing = chains.enter(ONE, async () => {
    seen.push("first");
    await first.promise;
    throw new Error("it failed");
  });
  const second = chains.enter(ONE, async () => seen.push("second"));
  await chains.enter(TWO, async () => seen.push("other guest"));
  expect(seen).toEqual(["first", "other guest"]);
  expect([chains.isBusy(ONE), chains.isBusy(TWO)]).toEqual([true, false]);
  first.resolve();
  await expect(failing).rejects.toThrow("it failed");
  await second;
  expect(seen).toEqual(["first", "other guest", "second"]);
  expect(chains.isBusy(ONE)).toBe(false);
});

test("a turn that cancels earlier ones begins after the running turn has ended, and waiting turns never begin", async () => {
  const chains = new GuestChains();
  const seen: string[] = [];
  const heard = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const running = chains.enter(ONE, async (signal) => {
    signal.addEventListener("abort", () => heard.resolve());
    await end.promise;
    seen.push("the one that ran has ended");
  });
  const waiting = chains.enter(ONE, async () => seen.push("never"));
  await Promise.resolve();
  const last = chains.enter(ONE, async () => seen.push("last"), { callOff: "a later order was given" });
  await heard.promise;
  expect(seen).toEqual([]);
  end.resolve();
  await running;
  await expect(waiting).rejects.toThrow("a later order was given");
  await last;
  expect(seen).toEqual(["the one that ran has ended", "last"]);
});

test("a final turn is not cancelled by another one", async () => {
  const chains = new GuestChains();
  const seen: string[] = [];
  const end = Promise.withResolvers<void>();
  const removing = chains.enter(
    ONE,
    async (signal) => {
      await end.promise;
      seen.push(signal.aborted ? "called off" : "removed");
    },
    { isFinal: true },
  );
  const again = chains.enter(ONE, async () => seen.push("again"), { callOff: "it is destroyed", isFinal: true });
  end.resolve();
  await Promise.all([removing, again]);
  expect(seen).toEqual(["removed", "again"]);
});
