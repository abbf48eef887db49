import { expect, test } from "vitest";
import { mixedWorld } from "../../sim/mixed.ts";
import { simulate } from "../../sim/simulate.ts";
import { TIMEOUT_MS, world } from "./world.ts";

const SLICE = 25;

/** Defines tests, each of 25 new worlds. A title names the first seed, and a failure the seed that broke a law. */
export function testFreshWorlds(slices: number, profile: "mixed" | "ports" = "mixed"): void {
  testWorlds(slices, profile, Math.floor(Math.random() * 2 ** 30), "worlds that were never tried before,");
}

/** Defines tests, each of 25 worlds, from the seed `first` on. */
export function testWorlds(
  slices: number,
  profile: "mixed" | "volumes" | "ports",
  first: number,
  what = "worlds,",
): void {
  test.each(Array.from({ length: slices }, (_, slice) => first + slice * SLICE))(
    `${SLICE} ${profile} ${what} from seed %i on`,
    { timeout: TIMEOUT_MS },
    async (from) => {
      for (let seed = from; seed < from + SLICE; seed += 1) {
        const { findings } = await simulate(profile === "mixed" ? mixedWorld(seed) : world(seed, profile));
        expect(findings, `berth sim --profile ${profile} --seed ${seed}`).toEqual([]);
      }
    },
  );
}
