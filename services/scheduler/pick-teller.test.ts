import { setImmediate } from "node:timers/promises";
import { pino } from "pino";
import { Registry } from "prom-client";
import { expect, test, vi } from "vitest";
import { MemorySoftState } from "../../adapters/memory/memory-soft-state.ts";
import type { HostPick } from "../../core/scheduling/host-pick.ts";
import { RecentPicks } from "../../core/scheduling/weighers/recent-picks.ts";
import { pickFadeMs } from "../../core/stores/soft-state.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { SchedulerEvents } from "./events.ts";
import { PickTeller } from "./pick-teller.ts";

const events = (clock: ManualClock) =>
  new SchedulerEvents({
    logger: pino({ level: "silent" }),
    registry: new Registry(),
    clock,
    claimsInFlight: () => 0,
    requestsInFlight: () => 0,
    rankings: { size: 0, memoryBytes: 0 },
  });

test("picks reach the other schedulers, which weigh those hosts again, and expire after a while", async () => {
  const clock = new ManualClock(0);
  const softState = new MemorySoftState(clock);
  const teller = (schedulerId: string, changed: HostPick[]) =>
    new PickTeller({
      softState,
      schedulerId,
      picksOfOthers: new RecentPicks(),
      onChanged: (host) => changed.push(host),
      clock,
      events: events(clock),
    });
  const [mine, others]: HostPick[][] = [[], []];
  const [one, two] = [teller("s1", mine!), teller("s2", others!)];
  one.picked("cell", "h1");
  await one.exchange();
  await two.exchange();
  await two.exchange();
  expect(mine).toEqual([]);
  expect(others).toEqual([{ cell: "cell", host: "h1" }]);
  clock.advance(pickFadeMs + 1);
  await two.exchange();
  expect(others).toEqual([
    { cell: "cell", host: "h1" },
    { cell: "cell", host: "h1" },
  ]);
});

test("a scheduler that has heard of no picks for a second wakes once a second, and tells its own next pick within a tenth of one", async () => {
  const clock = new ManualClock(0);
  const softState = new MemorySoftState(clock);
  let asked = 0;
  const teller = new PickTeller({
    softState: {
      recordPicks: (id, picks) => softState.recordPicks(id, picks),
      recentPicks: (id) => {
        asked += 1;
        return softState.recentPicks(id);
      },
    },
    schedulerId: "s1",
    picksOfOthers: new RecentPicks(),
    onChanged: () => {},
    clock,
    events: events(clock),
  });
  const passSeconds = async (seconds: number) => {
    for (let tenths = 0; tenths < seconds * 10; tenths += 1) {
      clock.advance(100);
      await setImmediate();
    }
  };
  teller.start();
  await passSeconds(2);
  asked = 0;
  const timers = vi.spyOn(clock, "setTimer");
  await passSeconds(10);
  expect([asked, timers.mock.calls.length]).toEqual([10, 10]);
  teller.picked("cell", "h1");
  await passSeconds(0.1);
  expect(await softState.recentPicks("s2")).toEqual([{ cell: "cell", host: "h1" }]);
  await teller.stop();
});
