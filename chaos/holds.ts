import type { ChaosCloud, Link, Way } from "./chaos-cloud.ts";

/** The effect of a fault on a link while the fault lasts. */
export type LinkDeed = { readonly kind: "cut"; readonly way: Way } | { readonly kind: "slow"; readonly ms: number };

/** The effects of the current faults on targets of one kind. A target is whole again when the last fault that affects it ends. */
export class Holds<Target, Deed extends object> {
  readonly #deeds = new Map<Target, Set<Deed>>();

  /** Returns all current effects on the target. */
  add(target: Target, deed: Deed): readonly Deed[] {
    const deeds = this.#deeds.get(target) ?? new Set();
    this.#deeds.set(target, deeds.add(deed));
    return [...deeds];
  }

  /** Returns the remaining effects on the target. */
  remove(target: Target, deed: Deed): readonly Deed[] {
    const deeds = this.#deeds.get(target);
    deeds?.delete(deed);
    if (deeds?.size === 0) this.#deeds.delete(target);
    return [...(deeds ?? [])];
  }
}

class CloudHolds {
  /** The paused parts, by name. */
  readonly paused = new Holds<string, object>();
  readonly fullDisks = new Holds<string, object>();
  readonly links = new Holds<Link, LinkDeed>();
  readonly failingBuilds = new Holds<"hosts", { readonly share: number }>();
}

const OF_CLOUDS = new WeakMap<ChaosCloud, CloudHolds>();

/** The current effects on a cloud, of all its nemeses together. */
export function holdsOn(cloud: ChaosCloud): CloudHolds {
  const holds = OF_CLOUDS.get(cloud) ?? new CloudHolds();
  OF_CLOUDS.set(cloud, holds);
  return holds;
}
