import { expect, test } from "vitest";
import { mixedWorld } from "../../cli/sim/mixed.ts";
import { MUTATIONS } from "../../cli/sim/mutations.ts";
import { PROFILES } from "../../cli/sim/profiles.ts";
import { type SimOptions, simulate } from "../../cli/sim/simulate.ts";

const SIZE = { cells: 2, apis: 2, schedulers: 2, conductors: 2, hosts: 12, operations: 60, busyMs: 20_000 };
/** Fresh seeds: so many times as many. */
const SLICES = 8;
const SLICE = 25;
/** In which the only api has no power while users are there: found by a fresh seed. */
const ONE_API_OUT = mixedWorld(500_807);
/** Heartbeats, leases and sweeps of 18 processes. */
const QUIET_STEPS_PER_SECOND = 200;
/** Each bug that is put in must show within so many seeds. */
const SEEDS_MAX = 100;
/** Worlds take a tenth of a second each, and far more on a busy machine. */
const TIMEOUT_MS = 240_000;

function world(seed: number, profile: string, more: Partial<SimOptions> = {}): SimOptions {
  const found = PROFILES.find(({ name }) => name === profile);
  if (found === undefined) throw new Error(`no profile ${profile}`);
  return { ...SIZE, seed, profile: found, mutation: null, wholeHistory: false, ...more };
}

test("the same seed gives the same history, byte for byte", { timeout: TIMEOUT_MS }, async () => {
  const [first, second] = [
    await simulate(world(7, "storm", { wholeHistory: true })),
    await simulate(world(7, "storm", { wholeHistory: true })),
  ];
  expect(first.history.length).toBeGreaterThan(100);
  expect(second.history).toEqual(first.history);
  expect((await simulate(world(8, "storm", { wholeHistory: true }))).digest).not.toBe(first.digest);
});

const FIRST = Math.floor(Math.random() * 2 ** 30);

test.each(Array.from({ length: SLICES }, (_, slice) => FIRST + slice * SLICE))(
  `${SLICE} worlds that were never tried before, from seed %i on`,
  { timeout: TIMEOUT_MS },
  async (first) => {
    for (let seed = first; seed < first + SLICE; seed += 1) {
      const { findings } = await simulate(mixedWorld(seed));
      expect(findings, `berth sim --profile mixed --seed ${seed}`).toEqual([]);
    }
  },
);

test("an api that is away as long as users are there is no broken law", { timeout: TIMEOUT_MS }, async () => {
  const { findings, counts } = await simulate(ONE_API_OUT);
  expect(findings).toEqual([]);
  expect(counts.accepted).toBeGreaterThan(0);
});

test("a quiet cloud is no work: time goes from event to event", { timeout: TIMEOUT_MS }, async () => {
  const quiet = (busyMs: number) => simulate(world(3, "calm", { operations: 5, busyMs }));
  const [short, long] = [await quiet(60_000), await quiet(360_000)];
  const stepsPerSecond = ((long.steps - short.steps) * 1_000) / (long.simulatedMs - short.simulatedMs);
  expect(stepsPerSecond).toBeLessThan(QUIET_STEPS_PER_SECOND);
});

test.each(MUTATIONS.map((mutation) => [mutation.name, mutation] as const))(
  "finds %s",
  { timeout: TIMEOUT_MS },
  async (_name, mutation) => {
    const { profile = "storm" } = mutation;
    for (let seed = 1; seed <= SEEDS_MAX; seed += 1) {
      const { findings } = await simulate(world(seed, profile, { mutation }));
      if (findings.length === 0) continue;
      // It is the bug that is found, and not the world.
      expect((await simulate(world(seed, profile))).findings).toEqual([]);
      return;
    }
    expect.fail(`${SEEDS_MAX} seeds hold: ${mutation.about}`);
  },
);
