import { pino } from "pino";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { ConductorEvents } from "./events.ts";
import { OrphanFinder } from "./orphan-finder.ts";

test("counts an orphaned allocation after two looks in a row have found it, until it is gone", async () => {
  const registry = new Registry();
  const clock = new ManualClock(0);
  const events = new ConductorEvents({ logger: pino({ level: "silent" }), registry, clock, taskCount: () => 0 });
  const looks = [["a"], ["a", "b"], ["b"], ["b"], []];
  const store = { orphans: async () => ({ orphans: looks.shift() ?? [], next: null }) };
  const finder = new OrphanFinder({ store, clock, events, settings: { orphanLookMs: 60_000 } });
  const counts: number[] = [];
  for (let look = 0; look < 5; look += 1) {
    await finder.look();
    counts.push((await registry.getSingleMetric("berth_conductor_orphaned_consumers")?.get())?.values[0]?.value ?? -1);
  }
  expect(counts).toEqual([0, 1, 1, 1, 0]);
});

test("each look continues where the previous one ended, and repeats what that one found", async () => {
  const clock = new ManualClock(0);
  const events = new ConductorEvents({
    logger: pino({ level: "silent" }),
    registry: new Registry(),
    clock,
    taskCount: () => 0,
  });
  const looks: { readonly after: string | null; readonly again: readonly string[] }[] = [];
  const pages = [
    { orphans: ["b"], next: "m" },
    { orphans: ["b", "x"], next: null },
    { orphans: [], next: "m" },
  ];
  const orphans = async ({ after, again }: (typeof looks)[number]) => {
    looks.push({ after, again });
    return pages[looks.length - 1]!;
  };
  const finder = new OrphanFinder({ store: { orphans }, clock, events, settings: { orphanLookMs: 60_000 } });
  for (const _ of pages) await finder.look();
  expect(looks).toEqual([
    { after: null, again: [] },
    { after: "m", again: ["b"] },
    { after: null, again: ["b", "x"] },
  ]);
});
