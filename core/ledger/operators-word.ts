import { type ProviderUuid, type ResourceClass, type Trait, trait } from "./ids.ts";
import type { Inventory, Provider } from "./model.ts";
import type { ProviderSpec, ProviderTree } from "./provider-tree.ts";

/** The trait on the root of a host that operators have closed for new servers. */
export const COMPUTE_STATUS_DISABLED: Trait = trait("COMPUTE_STATUS_DISABLED");

/** Operators' settings for the tree of one host. */
export interface OperatorsWord {
  readonly disabled: boolean;
  /** Ratios that apply to all inventories of the class in the tree. */
  readonly ratios: ReadonlyMap<ResourceClass, number>;
}

/** The reported tree as it must be written: operators' ratios replace the agent's, and a disabled host gets its trait. */
export function underOperatorsWord(tree: ProviderTree, word: OperatorsWord): ProviderTree {
  return {
    root: tree.root,
    providers: tree.providers.map((spec) => ({
      ...spec,
      inventories: new Map(
        Array.from(spec.inventories, ([name, inventory]): [ResourceClass, Inventory] => [
          name,
          { ...inventory, allocationRatio: word.ratios.get(name) ?? inventory.allocationRatio },
        ]),
      ),
      traits:
        word.disabled && spec.uuid === tree.root ? new Set([...spec.traits, COMPUTE_STATUS_DISABLED]) : spec.traits,
    })),
  };
}

/** The stored tree of a root, as a report that would change nothing. Null when there is no such root. */
export function treeAsReported(providers: readonly Provider[], root: ProviderUuid): ProviderTree | null {
  const members = providers.filter((provider) => provider.root === root);
  const listed: ProviderSpec[] = [];
  const childrenOf = (parent: ProviderUuid | null): void => {
    for (const provider of members.filter((member) => member.parent === parent)) {
      listed.push(specOf(provider));
      childrenOf(provider.uuid);
    }
  };
  childrenOf(null);
  return listed.length === 0 ? null : { root, providers: listed };
}

function specOf({ uuid, name, parent, inventories, traits, aggregates }: Provider): ProviderSpec {
  return {
    ...{ uuid, name, parent, traits, aggregates },
    expected: "any",
    inventories: new Map(Array.from(inventories, ([key, { used: _used, ...inventory }]) => [key, inventory])),
  };
}
