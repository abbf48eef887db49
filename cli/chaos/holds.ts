import type { ChaosCloud, Link, Way } from "./chaos-cloud.ts";

/** What a fault does to a link for as long as it lasts. */
export type LinkDeed = { readonly kind: "cut"; readonly way: Way } | { readonly kind: "slow"; readonly ms: number };

/** What the faults of this moment do to targets of one kind: a target is whole again when the last of them that has it ends. */
export class Holds<Target, Deed extends object> {
  readonly #deeds = new Map<Target, Set<Deed>>();

  /** Returns all that is done to the target now. */
  add(target: Target, deed: Deed): readonly Deed[] {
    const deeds = this.#deeds.get(target) ?? new Set();
    this.#deeds.set(target, deeds.add(deed));
    return [...deeds];
  }

  /** Returns what is done to the target still. */
  remove(target: Target, deed: Deed): readonly Deed[] {
    const deeds = this.#deeds.get(target);
    deeds?.delete(deed);
    if (deeds?.size === 0) this.#deeds.delete(target);
    return [...(deeds ?? [])];
  }
}

class CloudHolds {
  /** By name of the part. */
  readonly paused = new Holds<string, object>();
  readonly fullDisks = new Holds<string, object>();
  readonly links = new Holds<Link, LinkDeed>();
  readonly failingBuilds = new Holds<"hosts", { readonly share: number }>();
}

const OF_CLOUDS = new WeakMap<ChaosCloud, CloudHolds>();

/** What is done to a cloud at this moment, by all who do it harm. */
export function holdsOn(cloud: ChaosCloud): CloudHolds {
  const holds = OF_CLOUDS.get(cloud) ?? new CloudHolds();
  OF_CLOUDS.set(cloud, holds);
  return holds;
}
