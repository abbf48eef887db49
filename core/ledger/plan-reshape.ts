import type { AllocationChange } from "./allocation-change.ts";
import type { ConsumerUuid, ProviderUuid, ResourceClass } from "./ids.ts";
import { byProviderThenClass, compare } from "./ledger-state.ts";
import type { ShapeChange } from "./merge-report.ts";
import { type AllocationItem, type Consumer, capacityOf, type Provider } from "./model.ts";

/** A consumer with all that it holds, inside the tree and outside of it. */
export interface ReshapedConsumer extends Consumer {
  readonly items: readonly AllocationItem[];
}

export type ReshapePlan =
  | { readonly kind: "planned"; readonly change: AllocationChange }
  /** `why` is a sentence for the operator. */
  | { readonly kind: "refused"; readonly why: string };

/**
 * Decides where the allocations go whose classes a tree now offers elsewhere: for example from a flat root to NUMA nodes, or VGPU from the root
 * to the cards. A consumer's allocations of one provider move to one provider if there is one with room for all of it, and otherwise class by class.
 * The largest consumers choose first, and each takes the place with the least room that suffices. If one fits nowhere, nothing moves.
 *
 * `providers` is the tree with the new inventories beside the old ones. Cost: consumers × targets.
 */
export function planReshape(options: {
  readonly providers: readonly Provider[];
  readonly shapeChanges: readonly ShapeChange[];
  readonly consumers: readonly ReshapedConsumer[];
}): ReshapePlan {
  const rooms = new Rooms(options.providers);
  const changes = new Map(options.shapeChanges.map((change) => [keyOf(change), change]));
  const moving = options.consumers
    .map((consumer) => ({
      consumer,
      items: consumer.items.filter((item) => changes.has(keyOf(item))).toSorted(byProviderThenClass),
    }))
    .filter(({ items }) => items.length > 0)
    .toSorted((a, b) => sizeOf(b.items) - sizeOf(a.items) || compare(a.consumer.uuid, b.consumer.uuid));
  const steps: AllocationChange["steps"][number][] = [];
  for (const { consumer, items } of moving) {
    const moved: AllocationItem[] = [];
    for (const group of Map.groupBy(items, ({ provider }) => provider).values()) {
      const placed = rooms.place(consumer, group, (item) => changes.get(keyOf(item))?.targets ?? []);
      if ("why" in placed) return { kind: "refused", why: placed.why };
      moved.push(...placed.items);
    }
    const { uuid, generation, projectId, userId, type } = consumer;
    const staying = consumer.items.filter((item) => !items.includes(item));
    steps.push({
      ...{ kind: "replace", consumer: uuid, expected: generation, owner: { projectId, userId, type } },
      items: summed([...staying, ...moved]),
    });
  }
  return { kind: "planned", change: { steps } };
}

class Rooms {
  readonly #providers: ReadonlyMap<ProviderUuid, Provider>;
  readonly #taken = new Map<string, number>();
  /** Each consumer's amount at each place, because units limit the sum. */
  readonly #held = new Map<string, number>();

  constructor(providers: readonly Provider[]) {
    this.#providers = new Map(providers.map((provider) => [provider.uuid, provider]));
  }

  place(
    { uuid }: Consumer,
    items: readonly AllocationItem[],
    targetsOf: (item: AllocationItem) => readonly ProviderUuid[],
  ): { readonly items: readonly AllocationItem[] } | { readonly why: string } {
    const common = targetsOf(items[0]!).filter((target) =>
      items.every((item) => targetsOf(item).includes(target) && this.#fits(uuid, item, target)),
    );
    const together = this.#tightest(common, items[0]!.resourceClass);
    const placed: AllocationItem[] = [];
    for (const item of items) {
      const own = targetsOf(item).filter((target) => this.#fits(uuid, item, target));
      const target = together ?? this.#tightest(own, item.resourceClass);
      if (target === undefined) {
        const names = targetsOf(item).map((one) => this.#providers.get(one)?.name ?? one);
        const why = `${item.amount} ${item.resourceClass} of consumer ${uuid} fit in none of ${names.join(", ")}`;
        return { why };
      }
      this.#take(uuid, item, target);
      placed.push({ ...item, provider: target });
    }
    return { items: placed };
  }

  #tightest(targets: readonly ProviderUuid[], name: ResourceClass): ProviderUuid | undefined {
    return targets.toSorted((a, b) => this.#free(a, name) - this.#free(b, name))[0];
  }

  #free(target: ProviderUuid, name: ResourceClass): number {
    const inventory = this.#providers.get(target)?.inventories.get(name);
    if (inventory === undefined) return 0;
    return capacityOf(inventory) - inventory.used - (this.#taken.get(`${target}/${name}`) ?? 0);
  }

  #fits(consumer: ConsumerUuid, { resourceClass, amount }: AllocationItem, target: ProviderUuid): boolean {
    const inventory = this.#providers.get(target)?.inventories.get(resourceClass);
    if (inventory === undefined) return false;
    const sum = amount + (this.#held.get(`${consumer}/${target}/${resourceClass}`) ?? 0);
    const { minUnit, maxUnit, stepSize } = inventory;
    const isUnit = sum >= minUnit && sum <= maxUnit && sum % stepSize === 0;
    return isUnit && amount <= this.#free(target, resourceClass);
  }

  #take(consumer: ConsumerUuid, { resourceClass, amount }: AllocationItem, target: ProviderUuid): void {
    for (const [map, key] of [
      [this.#taken, `${target}/${resourceClass}`],
      [this.#held, `${consumer}/${target}/${resourceClass}`],
    ] as const)
      map.set(key, (map.get(key) ?? 0) + amount);
  }
}

const keyOf = ({ provider, resourceClass }: Pick<AllocationItem, "provider" | "resourceClass">): string =>
  `${provider}/${resourceClass}`;

const sizeOf = (items: readonly AllocationItem[]): number => items.reduce((sum, { amount }) => sum + amount, 0);

/** A list in which no place occurs twice. */
function summed(items: readonly AllocationItem[]): readonly AllocationItem[] {
  return [...Map.groupBy(items, keyOf).values()].map((same) => ({ ...same[0]!, amount: sizeOf(same) }));
}
