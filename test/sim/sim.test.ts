import { expect, test } from "vitest";
import { MUTATIONS } from "../../cli/sim/mutations.ts";
import { PROFILES } from "../../cli/sim/profiles.ts";
import { type SimOptions, simulate } from "../../cli/sim/simulate.ts";

const SIZE = { cells: 2, apis: 2, schedulers: 2, conductors: 2, hosts: 12, operations: 60, busyMs: 20_000 };
const FRESH_SEEDS = 30;
/** Each bug that is put in must show within so many seeds. */
const SEEDS_MAX = 100;
/** Worlds take a third of a second each, and several on a busy machine. */
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

test.each(PROFILES.map(({ name }) => name))(
  "profile %s: seeds that were never tried before",
  { timeout: TIMEOUT_MS },
  async (profile) => {
    const first = Math.floor(Math.random() * 2 ** 30);
    const count = profile === "swarm" ? FRESH_SEEDS : FRESH_SEEDS / 6;
    for (let seed = first; seed < first + count; seed += 1) {
      const { findings } = await simulate(world(seed, profile));
      expect(findings, `berth sim --profile ${profile} --seed ${seed}`).toEqual([]);
    }
  },
);

test.each(MUTATIONS.map((mutation) => [mutation.name, mutation] as const))(
  "finds %s",
  { timeout: TIMEOUT_MS },
  async (_name, mutation) => {
    for (let seed = 1; seed <= SEEDS_MAX; seed += 1) {
      const { findings } = await simulate(world(seed, "storm", { mutation }));
      if (findings.length > 0) return;
    }
    expect.fail(`${SEEDS_MAX} seeds hold: ${mutation.about}`);
  },
);
