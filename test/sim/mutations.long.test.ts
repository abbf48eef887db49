import { expect, test } from "vitest";
import { MUTATIONS } from "../../sim/mutations.ts";
import { simulate } from "../../sim/simulate.ts";
import { world } from "./world.ts";

/** Each inserted bug must show within this many seeds. */
const SEEDS_MAX = 250;
/**
 * Where the search begins for bugs that show in few worlds: the seed that found each of them last. When the services or the simulator have changed,
 * another seed may, so the search goes on with the next ones. The test then takes longer, and the seed that it prints belongs here.
 */
const FIRST_SEEDS: Readonly<Record<string, number>> = {
  ...{
    "fence-dropped": 68,
    "driver-deaf": 241,
    "move-sweep-blind": 97,
    "aborted-unheard": 22,
    "door-left-open": 62,
    "assigned-by-all": 5,
    "taken-over-unnoticed": 248,
  },
  ...{ "silence-decides": 46, "unseen-is-fenced": 22, "hand-over-lies": 41, "file-not-kept": 10, "merged-unseen": 56 },
  ...{ "silent-source-is-left": 70, "switch-unbound": 8, "kept-guest-forgotten": 57, "attaching-forgotten": 671 },
  ...{
    "kept-guest-keeps-the-volume": 26,
    "journal-forgets": 23,
    "moves-lost": 16,
    "power-lies": 8,
    "refusal-is-lack": 17,
    "failed-pivot-is-kept": 26,
  },
};
/** Number of worlds after which the seed that has found a bug is worth noting. */
const MANY_WORLDS = 4;
/** Some bugs show only after 200 worlds, which take minutes on a busy machine. */
const TIMEOUT_MS = 600_000;

test.each(MUTATIONS.map((mutation) => [mutation.name, mutation] as const))(
  "finds %s",
  { timeout: TIMEOUT_MS },
  async (name, mutation) => {
    const { profile = "storm" } = mutation;
    const first = FIRST_SEEDS[name] ?? 1;
    for (let worlds = 1; worlds <= SEEDS_MAX; worlds += 1) {
      const seed = first + worlds - 1;
      const { findings } = await simulate(world(seed, profile, { mutation }));
      if (findings.length === 0) continue;
      if (worlds > MANY_WORLDS)
        process.stdout.write(`${name} is found by seed ${seed}, the ${worlds}th that was tried\n`);
      // The same world without the bug has no findings.
      expect((await simulate(world(seed, profile))).findings).toEqual([]);
      return;
    }
    expect.fail(`${SEEDS_MAX} seeds hold: ${mutation.about}`);
  },
);
