import { isAgentsTrait, VANISHED } from "./agents-traits.ts";
import type { HypervisorFacts } from "./hypervisor-facts.ts";
import type { ProviderUuid, ResourceClass, Trait } from "./ids.ts";
import { compare } from "./ledger-state.ts";
import { capacityOf, type Inventory, type Provider } from "./model.ts";
import type { ProviderSpec, ProviderTree } from "./provider-tree.ts";

/** An agent's report of a provider. This part of the stored provider belongs to the agent, and the rest to others. */
export interface ReportedProvider {
  /** The classes of its inventories, with the allocation ratios that the agent reported. */
  readonly classes: ReadonlyMap<ResourceClass, number>;
  readonly traits: ReadonlySet<Trait>;
}

/** The latest report of a tree, by provider. A provider that is not in it belongs to somebody else. */
export type ReportedTree = ReadonlyMap<ProviderUuid, ReportedProvider>;

/** Something of which servers use more than the host offers. It takes no new claims until enough is given back. */
export interface KeptOffer {
  readonly provider: ProviderUuid;
  readonly name: string;
  /** Null when the provider itself stays only for those below it. */
  readonly resourceClass: ResourceClass | null;
  readonly used: number;
  /** The capacity, or null when the host no longer offers the class: then all of it is reserved, and it goes when nothing uses it. */
  readonly capacity: number | null;
  /**
   * Whether a report that offers less than before caused this, and not a claim. An audit treats the two cases differently.
   */
  readonly byReport: boolean;
}

/** Allocations of a class that the tree now offers elsewhere on the line between root and leaf: they can move there. */
export interface ShapeChange {
  readonly provider: ProviderUuid;
  readonly resourceClass: ResourceClass;
  /** The providers that have begun to offer the class, in the order of the report. */
  readonly targets: readonly ProviderUuid[];
}

export interface StoredTree {
  /** The members of the tree as they are stored. Empty when there is no such tree yet. */
  readonly providers: readonly Provider[];
  readonly reported: ReportedTree;
  /** The resources that were kept at the latest report. */
  readonly kept: readonly KeptOffer[];
  /** Ratios that operators have set for the host, by class. */
  readonly ratios: ReadonlyMap<ResourceClass, number>;
  /** The ratio that an operator's override of the host has displaced, or undefined when there is no override. */
  displacedRatio(provider: ProviderUuid, resourceClass: ResourceClass): number | undefined;
}

export type MergedReport =
  | {
      readonly kind: "merged";
      /** The tree to store: the agent's report, and resources that belong to others or are in use. */
      readonly tree: ProviderTree;
      readonly kept: readonly KeptOffer[];
      readonly shapeChanges: readonly ShapeChange[];
      /** The record of this report, to be stored with the tree. */
      readonly reported: ReportedTree;
    }
  | { readonly kind: "name-taken"; readonly provider: ProviderUuid; readonly name: string };

/**
 * Merges a report into the stored tree. The agent owns the resources that it has reported: it adds, changes and removes them. Everything else stays: traits,
 * inventories and providers of others, and a ratio that an operator has changed, until the agent itself reports another ratio. An initial ratio
 * counts only for an inventory that is not stored yet. Whatever servers
 * use stays too, with all of it reserved, until nothing uses it. The report must pass `malformedList`.
 *
 * Source: Nova's agents remove only traits that they own (nova/virt/libvirt/driver.py, _update_provider_tree), and take ratios from Placement
 * unless they are configured. Cost: proportional to the tree.
 */
export function mergeReport(report: ProviderTree, stored: StoredTree): MergedReport {
  const merge = new Merge(report, stored);
  const taken = merge.takenName();
  if (taken !== null) return taken;
  const tree = {
    root: report.root,
    providers: [...report.providers.map((spec) => merge.listed(spec)), ...merge.others()],
  };
  return {
    kind: "merged",
    tree,
    kept: merge.keptInOrder(),
    shapeChanges: merge.shapeChanges(),
    reported: merge.reported,
  };
}

class Merge {
  readonly #kept: KeptOffer[] = [];
  readonly reported = new Map<ProviderUuid, ReportedProvider>();
  readonly #report: ProviderTree;
  readonly #stored: StoredTree;
  readonly #byUuid: ReadonlyMap<ProviderUuid, Provider>;
  readonly #specs: ReadonlyMap<ProviderUuid, ProviderSpec>;
  readonly #names: ReadonlySet<string>;
  /** Stored providers that the report leaves out and that stay, parents before children. */
  readonly #staying: readonly Provider[];

  constructor(report: ProviderTree, stored: StoredTree) {
    this.#report = report;
    // Operators' ratios are applied to the merged tree when it is stored. Here every inventory has the ratio that it would have without
    // operators' ratios.
    this.#stored = { ...stored, providers: stored.providers.map((provider) => withoutOverrides(provider, stored)) };
    this.#byUuid = new Map(this.#stored.providers.map((provider) => [provider.uuid, provider]));
    this.#specs = new Map(report.providers.map((spec) => [spec.uuid, spec]));
    this.#names = new Set(report.providers.map(({ name }) => name));
    this.#staying = this.#findStaying();
  }

  /** A provider that the agent does not own, although the report uses its name for one of the agent's providers. */
  takenName(): MergedReport | null {
    const other = this.#staying.find(({ uuid, name }) => !this.#isOwned(uuid) && this.#names.has(name));
    if (other === undefined) return null;
    const spec = this.#report.providers.find(({ name }) => name === other.name)!;
    return { kind: "name-taken", provider: spec.uuid, name: other.name };
  }

  listed(spec: ProviderSpec): ProviderSpec {
    const before = this.#byUuid.get(spec.uuid);
    const owned = this.#stored.reported.get(spec.uuid);
    const ratios = new Map(
      Array.from(spec.inventories, ([name, { allocationRatio }]) => [
        name,
        (spec.initialRatios?.has(name) ? owned?.classes.get(name) : undefined) ?? allocationRatio,
      ]),
    );
    const inventories = new Map(
      Array.from(spec.inventories, ([name, inventory]) => [name, this.#withRatio(spec, name, inventory)]),
    );
    for (const [name, { used, ...inventory }] of before?.inventories ?? []) {
      const offered = inventories.get(name);
      if (offered !== undefined) {
        const capacity = this.#capacityOf(name, offered);
        if (used > capacity) this.#keep(spec, name, { used, capacity });
        continue;
      }
      const ratio = owned?.classes.get(name);
      if (ratio === undefined) inventories.set(name, inventory);
      else if (used > 0) {
        inventories.set(name, this.#closed(spec, name, { ...inventory, used }));
        ratios.set(name, ratio);
      }
    }
    this.reported.set(spec.uuid, { classes: ratios, traits: spec.traits });
    const others = [...(before?.traits ?? [])].filter(
      (name) => !isAgentsTrait(name) && owned?.traits.has(name) !== true,
    );
    return { ...spec, inventories, traits: new Set([...spec.traits, ...others]) };
  }

  /** Providers that the report leaves out and that stay. */
  others(): ProviderSpec[] {
    return this.#staying.map((provider) =>
      this.#isOwned(provider.uuid) ? this.#vanished(provider) : specOf(provider),
    );
  }

  /** By provider and class, in whichever order the ledger has listed the inventories. */
  keptInOrder(): readonly KeptOffer[] {
    return this.#kept.toSorted(
      (a, b) => compare(a.provider, b.provider) || compare(a.resourceClass ?? "", b.resourceClass ?? ""),
    );
  }

  shapeChanges(): ShapeChange[] {
    return this.keptInOrder().flatMap(({ provider, resourceClass, capacity }) => {
      if (resourceClass === null || capacity !== null) return [];
      const targets = this.#report.providers
        .filter((spec) => spec.uuid !== provider && this.#beginsToOffer(spec, resourceClass))
        .filter(({ uuid }) => this.#isAbove(uuid, provider) || this.#isAbove(provider, uuid))
        .map(({ uuid }) => uuid);
      return targets.length === 0 ? [] : [{ provider, resourceClass, targets }];
    });
  }

  #isOwned(uuid: ProviderUuid): boolean {
    return this.#stored.reported.has(uuid);
  }

  #findStaying(): readonly Provider[] {
    const children = Map.groupBy(this.#stored.providers, ({ parent }) => parent);
    const staying: Provider[] = [];
    const stays = (provider: Provider): boolean => {
      const at = staying.length;
      const below = (children.get(provider.uuid) ?? []).toSorted((a, b) => compare(a.uuid, b.uuid)).map(stays);
      if (this.#specs.has(provider.uuid)) return false;
      const isUsed = [...provider.inventories.values()].some(({ used }) => used > 0);
      if (!below.includes(true) && !isUsed && this.#isOwned(provider.uuid)) return false;
      staying.splice(at, 0, provider);
      return true;
    };
    for (const root of children.get(null) ?? []) stays(root);
    return staying;
  }

  #vanished(provider: Provider): ProviderSpec {
    const owned = this.#stored.reported.get(provider.uuid);
    const classes = new Map<ResourceClass, number>();
    const inventories = new Map<ResourceClass, Inventory>();
    for (const [name, { used, ...inventory }] of provider.inventories) {
      const ratio = owned?.classes.get(name);
      if (ratio === undefined) inventories.set(name, inventory);
      else if (used > 0) {
        inventories.set(name, this.#closed(provider, name, { ...inventory, used }));
        classes.set(name, ratio);
      }
    }
    if (classes.size === 0) this.#keep(provider, null, { used: 0, capacity: null });
    this.reported.set(provider.uuid, { classes, traits: owned?.traits ?? new Set() });
    const name = this.#names.has(provider.name) ? `${provider.name} (vanished, ${provider.uuid})` : provider.name;
    return { ...specOf(provider), name, inventories, traits: new Set([...provider.traits, VANISHED]) };
  }

  #closed(
    provider: Pick<Provider, "uuid" | "name">,
    resourceClass: ResourceClass,
    { used, ...inventory }: Inventory & { readonly used: number },
  ): Inventory {
    this.#keep(provider, resourceClass, { used, capacity: null });
    return { ...inventory, reserved: inventory.total };
  }

  #keep(
    { uuid, name }: Pick<Provider, "uuid" | "name">,
    resourceClass: ResourceClass | null,
    use: Pick<KeptOffer, "used" | "capacity">,
  ): void {
    const before = resourceClass === null ? undefined : this.#byUuid.get(uuid)?.inventories.get(resourceClass);
    const last = this.#stored.kept.find((one) => one.provider === uuid && one.resourceClass === resourceClass);
    const byReport =
      (before !== undefined && resourceClass !== null && before.used <= this.#capacityOf(resourceClass, before)) ||
      (last?.byReport === true && use.used <= last.used);
    this.#kept.push({ provider: uuid, name, resourceClass, ...use, byReport });
  }

  #capacityOf(name: ResourceClass, inventory: Inventory): number {
    return capacityOf({ ...inventory, allocationRatio: this.#stored.ratios.get(name) ?? inventory.allocationRatio });
  }

  #withRatio({ uuid, initialRatios }: ProviderSpec, name: ResourceClass, inventory: Inventory): Inventory {
    const before = this.#byUuid.get(uuid)?.inventories.get(name);
    if (before === undefined) return inventory;
    const reported = this.#stored.reported.get(uuid)?.classes.get(name);
    const isChanged = reported !== undefined && reported !== inventory.allocationRatio;
    if (isChanged && initialRatios?.has(name) !== true) return inventory;
    return { ...inventory, allocationRatio: before.allocationRatio };
  }

  /** Whether the report offers the class where it was not offered before, or where it was closed. */
  #beginsToOffer(spec: ProviderSpec, name: ResourceClass): boolean {
    if (!spec.inventories.has(name)) return false;
    const before = this.#byUuid.get(spec.uuid);
    return before?.inventories.has(name) !== true || before.traits.has(VANISHED);
  }

  /** Whether the first provider is an ancestor of the second, in the report or, for providers that it leaves out, as they are stored. */
  #isAbove(ancestor: ProviderUuid, provider: ProviderUuid): boolean {
    let parent = this.#parentOf(provider);
    // No tree is deeper than it has providers.
    for (let depth = this.#specs.size + this.#byUuid.size; parent !== null && depth > 0; depth -= 1) {
      if (parent === ancestor) return true;
      parent = this.#parentOf(parent);
    }
    return false;
  }

  #parentOf(uuid: ProviderUuid): ProviderUuid | null {
    return (this.#specs.get(uuid) ?? this.#byUuid.get(uuid))?.parent ?? null;
  }
}

/** The provider with the ratios that operators' overrides have displaced. */
function withoutOverrides(provider: Provider, { displacedRatio }: Pick<StoredTree, "displacedRatio">): Provider {
  const inventories = Array.from(provider.inventories, ([name, inventory]) => {
    const allocationRatio = displacedRatio(provider.uuid, name) ?? inventory.allocationRatio;
    return [name, { ...inventory, allocationRatio }] as const;
  });
  return { ...provider, inventories: new Map(inventories) };
}

function specOf({ uuid, name, parent, inventories, traits }: Provider): ProviderSpec {
  return {
    ...{ uuid, name, parent, traits, expected: "any" },
    inventories: new Map(Array.from(inventories, ([key, { used: _used, ...inventory }]) => [key, inventory])),
  };
}

/**
 * A sentence for each thing that is kept, for the logs of agents and for operators. While a host takes no new servers for a reason of its own, it offers nothing of what they use,
 * and the reason says more than a sentence for each class.
 */
export function describeAllKept(kept: readonly KeptOffer[], closedBecause: string | null): string[] {
  if (closedBecause === null) return kept.map(describeKept);
  const isClosed = ({ capacity }: KeptOffer) => capacity === 0;
  const others = kept.filter((one) => !isClosed(one)).map(describeKept);
  const reason = `the host takes no new servers, and what its servers use is kept: ${closedBecause}`;
  return kept.some(isClosed) ? [reason, ...others] : others;
}

/** Why a host takes no new servers, by its own report. Null if it does, or if the reason is unknown. */
export function whyClosed({ closedBecause, node }: Pick<HypervisorFacts, "closedBecause" | "node">): string | null {
  return [closedBecause, node?.closedBecause].find((reason) => reason !== undefined && reason !== "") ?? null;
}

function describeKept({ name, resourceClass, used, capacity }: KeptOffer): string {
  if (resourceClass === null)
    return `provider ${name} has vanished from the host, and is kept because of the providers below it`;
  if (capacity === null)
    return `${resourceClass} of provider ${name} is no longer offered. It is kept, closed for new servers, because ${used} of it are in use`;
  return `${resourceClass} of provider ${name} is over capacity, ${used} of ${capacity} are in use: it takes no new servers until enough is released`;
}

/** Whether two lists of kept resources are equal. */
export function isSameKept(a: readonly KeptOffer[], b: readonly KeptOffer[]): boolean {
  const keys = ["provider", "name", "resourceClass", "used", "capacity", "byReport"] as const;
  return a.length === b.length && a.every((one, index) => keys.every((key) => one[key] === b[index]![key]));
}

/** Whether two records of reports are equal. */
export function isSameReport(a: ReportedTree, b: ReportedTree): boolean {
  return (
    a.size === b.size &&
    [...a].every(([uuid, { classes, traits }]) => {
      const other = b.get(uuid);
      return (
        other !== undefined &&
        classes.size === other.classes.size &&
        traits.size === other.traits.size &&
        [...classes].every(([name, ratio]) => other.classes.get(name) === ratio) &&
        [...traits].every((name) => other.traits.has(name))
      );
    })
  );
}
