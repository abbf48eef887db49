import type { AllocationChange, AllocationStep, ExpectedGeneration } from "../../core/ledger/allocation-change.ts";
import {
  type AggregateUuid,
  type ConsumerUuid,
  type ProviderUuid,
  resourceClass,
  trait,
} from "../../core/ledger/ids.ts";
import {
  type AllocationItem,
  CONSUMER_TYPE_INSTANCE,
  type ConsumerOwner,
  type Inventory,
} from "../../core/ledger/model.ts";
import type { ProviderSpec, ProviderTree } from "../../core/ledger/provider-tree.ts";

/** Short constructors of the ledger's values, for all tests. */
export const INSTANCE: ConsumerOwner = { projectId: "project", userId: "user", type: CONSUMER_TYPE_INSTANCE };

/** An inventory that can be allocated completely, in any amount. */
export function inventory(total: number, rest: Partial<Inventory> = {}): Inventory {
  return { total, reserved: 0, minUnit: 1, maxUnit: total, stepSize: 1, allocationRatio: 1, ...rest };
}

export function item(provider: ProviderUuid, name: string, amount: number): AllocationItem {
  return { provider, resourceClass: resourceClass(name), amount };
}

export function replace(
  consumer: ConsumerUuid,
  expected: ExpectedGeneration,
  items: readonly AllocationItem[],
): AllocationStep {
  return { kind: "replace", consumer, expected, owner: INSTANCE, items };
}

export function move(from: ConsumerUuid, to: ConsumerUuid, toType = "MIGRATION"): AllocationStep {
  return { kind: "move", from, to, toType };
}

/** Steps that take effect together or not at all. */
export function change(...steps: readonly AllocationStep[]): AllocationChange {
  return { steps };
}

/** A provider as its owner reports it, by default a root without inventories. */
export function spec(
  uuid: ProviderUuid,
  name: string,
  rest: {
    readonly parent?: ProviderUuid;
    readonly expected?: ProviderSpec["expected"];
    readonly inventories?: Readonly<Record<string, Inventory>>;
    readonly traits?: readonly string[];
    readonly aggregates?: readonly AggregateUuid[];
  } = {},
): ProviderSpec {
  return {
    uuid,
    name,
    parent: rest.parent ?? null,
    expected: rest.expected === undefined ? "any" : rest.expected,
    inventories: new Map(Object.entries(rest.inventories ?? {}).map(([key, value]) => [resourceClass(key), value])),
    traits: new Set((rest.traits ?? []).map(trait)),
    ...(rest.aggregates === undefined ? {} : { aggregates: new Set(rest.aggregates) }),
  };
}

/** A tree whose root is its first provider. */
export function tree(root: ProviderSpec, ...others: readonly ProviderSpec[]): ProviderTree {
  return { root: root.uuid, providers: [root, ...others] };
}
