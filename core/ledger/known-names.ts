import type { ResourceClass, Trait } from "./ids.ts";

/** The names that exist in a cell, whether or not a provider has them. Who asks for another one has mistyped it. */
export class KnownNames {
  readonly classes = new Set<ResourceClass>();
  readonly traits = new Set<Trait>();

  get memoryBytes(): number {
    return (this.classes.size + this.traits.size) * 80;
  }
}
