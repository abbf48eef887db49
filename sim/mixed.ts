import { seededRandom, seedOf } from "../core/scheduling/seeded-random.ts";
import { PROFILES, type Profile } from "./profiles.ts";
import type { SimOptions } from "./simulate.ts";

/** Profiles with more faults are drawn more often, because a calm world reveals little. */
const DRAWN = ["swarm", "swarm", "storm", "storm", "crashes", "partitions", "slow", "calm"];

/** Share of the worlds whose servers have ports in a Neutron, which has faults of its own. */
const PORTS_SHARE = 0.15;

/** A small world whose profile and size are also decided by the seed, for runs of many seeds. */
export function mixedWorld(seed: number): SimOptions {
  const random = seededRandom(seedOf(`${seed} size`));
  const between = (least: number, most: number) => least + Math.floor(random() * (most - least + 1));
  const name = DRAWN[between(0, DRAWN.length - 1)]!;
  const hosts = between(3, 12);
  const drawn = {
    seed,
    hosts,
    cells: hosts >= 6 && random() < 0.3 ? 2 : 1,
    apis: between(1, 2),
    schedulers: between(1, 3),
    conductors: between(1, 3),
    operations: between(2, 6) * 10,
    busyMs: between(2, 6) * 5_000,
    mutation: null,
    wholeHistory: false,
  };
  // Drawn last, so that all else of a seed is as it would be without ports.
  const profile = profileOf(name);
  return { ...drawn, profile: random() < PORTS_SHARE && name !== "calm" ? withPorts(profile) : profile };
}

function withPorts(profile: Profile): Profile {
  const { neutron } = profileOf("ports");
  const faults: Profile["faults"] = [...profile.faults, "neutron-away", "no-driver"];
  return { ...profile, faults, ...(neutron && { neutron }) };
}

const profileOf = (name: string): Profile => PROFILES.find((profile) => profile.name === name)!;
