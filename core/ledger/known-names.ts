import type { ResourceClass, Trait } from "./ids.ts";

/** The resource classes and traits that exist in a cell, whether or not a provider has them. Any other name in a request is mistyped. */
export class KnownNames {
  readonly classes = new Set<ResourceClass>();
  readonly traits = new Set<Trait>();

  get memoryBytes(): number {
    return (this.classes.size + this.traits.size) * 80;
  }
}
