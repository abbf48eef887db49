import { expect, test } from "vitest";
import { MUTATIONS } from "../../sim/mutations.ts";
import { simulate } from "../../sim/simulate.ts";
import { world } from "./world.ts";

/** Each inserted bug must show within this many seeds. */
const SEEDS_MAX = 250;
/** Some bugs show only after 70 worlds, which take minutes on a busy machine. */
const TIMEOUT_MS = 600_000;

test.each(MUTATIONS.map((mutation) => [mutation.name, mutation] as const))(
  "finds %s",
  { timeout: TIMEOUT_MS },
  async (_name, mutation) => {
    const { profile = "storm" } = mutation;
    for (let seed = 1; seed <= SEEDS_MAX; seed += 1) {
      const { findings } = await simulate(world(seed, profile, { mutation }));
      if (findings.length === 0) continue;
      // The same world without the bug has no findings.
      expect((await simulate(world(seed, profile))).findings).toEqual([]);
      return;
    }
    expect.fail(`${SEEDS_MAX} seeds hold: ${mutation.about}`);
  },
);
