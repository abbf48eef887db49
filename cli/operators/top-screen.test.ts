import { expect, test } from "vitest";
import type { LivePath, LivePicture } from "../../services/api/dashboard/live-picture.ts";
import { holdPicture } from "../../services/api/dashboard/read-live-events.ts";
import { topText } from "./print-top.ts";
import { TopScreen } from "./top-screen.ts";

const PATH: LivePath = {
  ...{
    id: "01a21552-6815-7a50-9e0f-ca0a5dba757a",
    name: "web",
    project: "p",
    cell: "north",
    kind: "build",
    state: "active",
    at: 1_000,
  },
  ...{ endedAt: 1_900, fault: null },
  attempts: [
    { host: "one", at: 1_100, endedAt: 1_300, result: "failed", reason: "disk\nfull \u001b[31m" },
    { host: "two", at: 1_300, endedAt: 1_900, result: "success", reason: null },
  ],
};
const picture = (active: number): LivePicture => ({
  classes: ["VCPU"],
  cells: [
    {
      name: "north",
      ready: true,
      answers: true,
      lagMs: 4,
      conductors: [{ id: "c", name: "c", alive: true, tasks: 3 }],
    },
    { name: "south", ready: true, answers: false, lagMs: null, conductors: [] },
  ],
  hosts: [
    [0, "one", 1, 2, 1, 0, 4, 8],
    [0, "two", 0, 0, 0, 0, 0, 8],
  ],
  paths: [PATH],
  history: [],
  figures: {
    ...{ at: 0, busy: 1, waiting: 2, oldestWaitingAt: 500, faults: null },
    cellCounts: [],
    schedulers: [
      { id: "s", placed: 7.5, refused: 0, racesLost: 0.5, queueAgeMs: 12 },
      { id: "t", placed: null, refused: null, racesLost: null, queueAgeMs: null },
    ],
    counts: { placed: 0, hops: 1, active, failed: 0, deleted: 0 },
    laws: {
      at: 0,
      broken: [
        { law: 2, subject: "x", evidence: "y" },
        { law: 0, subject: "group g", evidence: "y" },
        { law: "volumes", subject: "volume v", evidence: "y" },
      ],
      unchecked: [],
    },
  },
});

test("shows cells, laws and the path of each request, without control characters", () => {
  const text = topText(holdPicture(picture(3)), { nowMs: 3_000, rates: null, pathsMax: 5, width: 200 });
  expect(text).toContain("waiting 2, the oldest for 2.5 s   in motion 1   active 3   hops 1   failed 0");
  expect(text).toContain("laws: BROKEN law 2: x; server groups: group g; volumes in Cinder: volume v");
  expect(text).toContain("schedulers 2: 7.5 placed/s, 0.5 races lost/s, 12 ms in the queue");
  expect(text).toMatch(/^north +2 +1 +2 +1 +25% of 16 +1 +4 ms +follows$/m);
  expect(text).toMatch(/^south +0 +0 +0 +0 +- +0 +- +DOES NOT ANSWER$/m);
  expect(text).toContain("x one (disk full ?[31m) → + two");
  expect(text).toMatch(new RegExp(`^${PATH.id} `, "m"));
  const ofWidth = (width: number) =>
    topText(holdPicture(picture(3)), { nowMs: 3_000, rates: null, pathsMax: 5, width });
  expect(ofWidth(120)).toContain(`\n${PATH.id} `);
  expect(ofWidth(119)).toContain(`\n${PATH.id.slice(-8)} `);
  const narrow = topText(holdPicture(picture(3)), { nowMs: 3_000, rates: null, pathsMax: 0, width: 30 });
  expect(Math.max(...narrow.split("\n").map((line) => line.length))).toBe(30);
  expect(narrow).toContain("no requests yet");
});

test("an old reading of the laws is not shown as the present state, and laws that it did not check are named", () => {
  const { figures, ...rest } = picture(3);
  const textAt = (nowMs: number, unchecked: readonly number[] = []) =>
    topText(holdPicture({ ...rest, figures: { ...figures, laws: { at: 10_000, broken: [], unchecked } } }), {
      ...{ nowMs, rates: null, pathsMax: 5, width: 200 },
    });
  expect(textAt(60_000)).toContain("laws: all six hold");
  expect(textAt(60_000, [4, 6])).toContain("laws: hold; 4 and 6 not checked");
  expect(textAt(80_000)).toContain("laws: no audit reports here");
});

test("rates come from the counts of the last seconds, and are not negative after the api began again", () => {
  const drawn: (number | null)[] = [];
  const screen = new TopScreen((_held, rates) => drawn.push(rates === null ? null : rates.active));
  screen.tick(0);
  for (const [atMs, active] of [
    [0, 10],
    [1_000, 14],
    [2_000, 14],
    [9_000, 14],
    [9_500, 0],
  ] as const) {
    screen.held = holdPicture(picture(active));
    screen.tick(atMs);
  }
  expect(drawn).toEqual([null, 4, 2, null, 0]);
});
