import { describe, expect, it } from "vitest";
import fc from "../test/rigs/property.ts";
import { VirtualClock } from "./virtual-clock.ts";

const toTheEnd = (clock: VirtualClock) => {
  while (clock.step(1_000)) {}
};

describe("VirtualClock", () => {
  it("runs timers in the order of their times, those of the same time in the order in which they were set, and no cancelled one", () => {
    const timer = fc.record({ delayMs: fc.nat({ max: 20 }), againMs: fc.nat({ max: 5 }), isCancelled: fc.boolean() });
    fc.assert(
      fc.property(fc.array(timer, { maxLength: 60 }), (timers) => {
        const clock = new VirtualClock(0);
        const ran: { readonly atMs: number; readonly order: number }[] = [];
        let order = 0;
        const set = (delayMs: number, then: () => void) => {
          order += 1;
          const mine = order;
          const dueMs = clock.monotonic() + delayMs;
          return clock.setTimer(delayMs, () => {
            expect(clock.monotonic()).toBe(dueMs);
            ran.push({ atMs: dueMs, order: mine });
            then();
          });
        };
        for (const { delayMs, againMs, isCancelled } of timers) {
          const one = set(delayMs, () => set(againMs, () => {}));
          if (isCancelled) one.cancel();
        }
        toTheEnd(clock);
        expect(ran).toEqual(ran.toSorted((a, b) => a.atMs - b.atMs || a.order - b.order));
        expect(ran.length).toBe(timers.filter(({ isCancelled }) => !isCancelled).length * 2);
      }),
    );
  });

  it("lets the timers of a paused owner wait, and runs none of a dead one", () => {
    const clock = new VirtualClock(0);
    const owner = { alive: true, pausedMs: 7 };
    const ranAt: number[] = [];
    const run = () => ranAt.push(clock.monotonic());
    clock.setTimer(3, run, owner);
    clock.setTimer(4, run, owner).cancel();
    clock.setTimer(5, () => {
      owner.pausedMs = 0;
    });
    clock.setTimer(11, () => {
      owner.alive = false;
    });
    clock.setTimer(12, run, owner);
    toTheEnd(clock);
    expect(ranAt).toEqual([10]);
  });
});
