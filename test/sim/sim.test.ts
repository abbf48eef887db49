import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { mixedWorld } from "../../sim/mixed.ts";
import { MUTATIONS } from "../../sim/mutations.ts";
import { simulate } from "../../sim/simulate.ts";
import { testFreshWorlds } from "./fresh-worlds.ts";
import { TIMEOUT_MS, world } from "./world.ts";

/** A world in which the only api has no power as long as there are users. A random seed found it. */
const ONE_API_OUT = mixedWorld(500_807);
/** Worlds in which the restored database does not want a guest that is the last copy of its server. */
const RESTORED = [4, 6];
/** A world in which a move is continued twice after its end. The source refuses the hand-over, and the destination runs. */
const ENDED_SINCE = 1_900_000_087;
/** Worlds in which a driver of Cinder is late, and in which a host connects again while Cinder fills its server's volume. */
const WITH_VOLUMES = [4, 16];
/** A world in which a restored database has forgotten a server that had just got its volumes. */
const VOLUMES_RESTORED = 24;
/** Worlds in which Cinder migrates volumes that servers use, and gives some migrations up. */
const MIGRATED = [1, 3];
/** Worlds in which Cinder fills boot volumes slowly, not at all, and after their conductor has died. */
const REBUILT = [7, 34];
/** Worlds in which servers with ports are moved live and cold, rebuilt and shelved. */
const WITH_PORTS = [8, 880_051];
/** Worlds in which agents lie, also about hosts of others. */
const LIED = [2, 3];
/** Worlds in which hosts lose guests and whole disks. */
const GUESTS_LOST = [7, 16];
/** Seeds whose agents lose their journals while they have guests. */
const JOURNALS_LOST = [1, 2];
/** The heartbeats, leases and sweeps of 18 processes. */
const QUIET_STEPS_PER_SECOND = 200;

test("the same seed gives the same history, byte for byte", { timeout: TIMEOUT_MS }, async () => {
  const [first, second] = [
    await simulate(world(7, "storm", { wholeHistory: true })),
    await simulate(world(7, "storm", { wholeHistory: true })),
  ];
  expect(first.history.length).toBeGreaterThan(100);
  expect(second.history).toEqual(first.history);
  expect((await simulate(world(8, "storm", { wholeHistory: true }))).digest).not.toBe(first.digest);
});

test("other work of the process keeps the real clock and the real randomness, and changes nothing in a world", {
  timeout: TIMEOUT_MS,
}, async () => {
  const alone = await simulate(world(7, "storm"));
  const bounds = { from: Date.now(), to: 0 };
  const seen = { dates: [] as number[], months: new Set<number>(), timers: 0, cancelled: 0, immediates: 0 };
  const work = () => {
    seen.months.add(new Date(2_020, 5, 1).getMonth());
    seen.dates.push(Date.now(), Date.parse(new Date().toISOString()));
    Math.random();
    randomUUID();
    setTimeout(() => {
      seen.timers += 1;
    }, 0);
    const cancelled = setTimeout(() => {
      seen.cancelled += 1;
    }, 0);
    clearTimeout(cancelled);
    setImmediate(() => {
      seen.immediates += 1;
    });
  };
  const interval = setInterval(work, 1);
  try {
    expect(await simulate(world(7, "storm"))).toEqual(alone);
  } finally {
    clearInterval(interval);
  }
  bounds.to = Date.now();
  expect(seen.dates.filter((date) => date < bounds.from || date > bounds.to)).toEqual([]);
  expect([...seen.months]).toEqual([5]);
  expect(seen.timers).toBeGreaterThan(0);
  expect(seen.immediates).toBeGreaterThan(0);
  expect(seen.cancelled).toBe(0);
});

testFreshWorlds(1);

test("an api that is away as long as there are users breaks no law", { timeout: TIMEOUT_MS }, async () => {
  const { findings, counts } = await simulate(ONE_API_OUT);
  expect(findings).toEqual([]);
  expect(counts.accepted).toBeGreaterThan(0);
});

test("a cell's database that is restored to an earlier moment costs no server its last copy", {
  timeout: TIMEOUT_MS,
}, async () => {
  const ignored = MUTATIONS.find(({ name }) => name === "quarantine-ignored");
  if (ignored === undefined) throw new Error("there is no such bug");
  for (const seed of RESTORED) {
    const { findings, history } = await simulate(world(seed, "restores", { wholeHistory: true }));
    expect(findings, `berth sim --profile restores --seed ${seed}`).toEqual([]);
    expect(history.filter((line) => line.includes('"what":"restored"')).length).toBeGreaterThan(0);
    // It is the quarantine that keeps the copies.
    expect((await simulate(world(seed, "restores", { mutation: ignored }))).findings).toMatchObject([{ law: 6 }]);
  }
});

test("a guest that a restored database has forgotten keeps its volumes when its request fails", {
  timeout: TIMEOUT_MS,
}, async () => {
  const { findings, history } = await simulate(world(VOLUMES_RESTORED, "volumes-restored", { wholeHistory: true }));
  expect(findings, `berth sim --profile volumes-restored --seed ${VOLUMES_RESTORED}`).toEqual([]);
  expect(history.some((line) => line.includes('"what":"restored"'))).toBe(true);
});

test("servers keep the volumes that Cinder makes for them, and nothing of a server that is gone is left in Cinder", {
  timeout: TIMEOUT_MS,
}, async () => {
  for (const seed of WITH_VOLUMES) {
    const { findings, counts } = await simulate(world(seed, "volumes"));
    expect(findings, `berth sim --profile volumes --seed ${seed}`).toEqual([]);
    expect(counts.active).toBeGreaterThan(0);
  }
});

test("Cinder migrates volumes of servers whose guests go on writing to them, and nothing that they have written is lost", {
  timeout: TIMEOUT_MS,
}, async () => {
  const ended = new Map<string, number>();
  for (const seed of MIGRATED) {
    const { findings, counts } = await simulate(world(seed, "volume-migrations"));
    expect(findings, `berth sim --profile volume-migrations --seed ${seed}`).toEqual([]);
    for (const [what, count] of Object.entries(counts.changes)) ended.set(what, (ended.get(what) ?? 0) + count);
  }
  expect(ended.get("volume migrations completed")).toBeGreaterThan(0);
  expect(ended.get("volume migrations given up")).toBeGreaterThan(0);
});

test("no guest runs while Cinder fills the boot volume of its server, and a rebuilt server has the image", {
  timeout: TIMEOUT_MS,
}, async () => {
  const courses = new Set<string>();
  for (const seed of REBUILT) {
    const { findings, history } = await simulate(world(seed, "reimages", { wholeHistory: true }));
    expect(findings, `berth sim --profile reimages --seed ${seed}`).toEqual([]);
    for (const [, course = ""] of history.join("\n").matchAll(/"what":"fills".*"course":"([a-z-]+)"/g))
      courses.add(course);
  }
  expect(courses).toEqual(new Set(["filled", "failed", "stuck", "refused-late"]));
});

test("the ports of servers are bound where the servers run, and nothing of a server that is gone is left in Neutron", {
  timeout: TIMEOUT_MS,
}, async () => {
  let liveMigrations = 0;
  for (const seed of WITH_PORTS) {
    const { findings, counts } = await simulate(world(seed, "ports"));
    expect(findings, `berth sim --profile ports --seed ${seed}`).toEqual([]);
    expect(counts.active).toBeGreaterThan(0);
    liveMigrations += counts.changes["live"] ?? 0;
  }
  expect(liveMigrations).toBeGreaterThan(0);
});

test("an agent that lies about its hosts and about those of others harms no server that is not on its hosts", {
  timeout: TIMEOUT_MS,
}, async () => {
  for (const seed of LIED) {
    const { findings, history } = await simulate(world(seed, "lies", { wholeHistory: true }));
    expect(findings, `berth sim --profile lies --seed ${seed}`).toEqual([]);
    expect(history.filter((line) => line.includes('"what":"lies","message"')).length).toBeGreaterThan(0);
    expect(history.some((line) => line.includes("it is about a host or an attempt of another agent"))).toBe(true);
  }
});

test("a database that is restored to the middle of a move that has ended since runs no server twice", {
  timeout: TIMEOUT_MS,
}, async () => {
  const { findings, history } = await simulate(world(ENDED_SINCE, "restores-midway", { wholeHistory: true }));
  expect(findings).toEqual([]);
  expect(history.some((line) => line.includes("this conductor resumed a build"))).toBe(true);
});

test("a quiet cloud costs little: time jumps from event to event", { timeout: TIMEOUT_MS }, async () => {
  const quiet = (busyMs: number) => simulate(world(3, "calm", { operations: 5, busyMs }));
  const [short, long] = [await quiet(60_000), await quiet(360_000)];
  const stepsPerSecond = ((long.steps - short.steps) * 1_000) / (long.simulatedMs - short.simulatedMs);
  expect(stepsPerSecond).toBeLessThan(QUIET_STEPS_PER_SECOND);
});

test("every server whose host has lost its guest has one again after rebuilds", { timeout: TIMEOUT_MS }, async () => {
  for (const seed of GUESTS_LOST) {
    const { findings, counts } = await simulate(world(seed, "lost-guests"));
    expect(findings, `berth sim --profile lost-guests --seed ${seed}`).toEqual([]);
    expect(counts.changes["rebuilds of lost guests"]).toBeGreaterThan(0);
  }
});

test("an agent that has lost its journal takes over the guests on its hosts, and all laws hold", {
  timeout: TIMEOUT_MS,
}, async () => {
  for (const seed of JOURNALS_LOST) {
    const { findings, history } = await simulate(world(seed, "journal-lost", { wholeHistory: true }));
    expect(findings, `berth sim --profile journal-lost --seed ${seed}`).toEqual([]);
    expect(history.some((line) => line.includes("the agent has taken over guests"))).toBe(true);
  }
});
