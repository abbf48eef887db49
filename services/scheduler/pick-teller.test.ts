import { pino } from "pino";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { MemorySoftState } from "../../adapters/memory/memory-soft-state.ts";
import type { HostPick } from "../../core/scheduling/host-pick.ts";
import { RecentPicks } from "../../core/scheduling/weighers/recent-picks.ts";
import { pickFadeMs } from "../../core/stores/soft-state.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { SchedulerEvents } from "./events.ts";
import { PickTeller } from "./pick-teller.ts";

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
      events: new SchedulerEvents({
        logger: pino({ level: "silent" }),
        registry: new Registry(),
        clock,
        claimsInFlight: () => 0,
        requestsInFlight: () => 0,
        rankings: { size: 0, memoryBytes: 0 },
      }),
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
