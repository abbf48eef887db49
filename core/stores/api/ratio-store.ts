import type { Ratios } from "../cell/host-admin-store.ts";

/** Whose ratios are set: all hosts of an aggregate, or one host. */
export type RatioScope =
  | { readonly kind: "aggregate"; readonly id: number }
  | { readonly kind: "host"; readonly host: string };

/** All ratios that are set, by aggregate id and by host. */
export interface RatioSettings {
  readonly byAggregate: ReadonlyMap<number, Ratios>;
  readonly byHost: ReadonlyMap<string, Ratios>;
}

/**
 * Allocation ratios that operators set. They are stored with the aggregates: deleting an aggregate deletes its ratios, and
 * `AggregateStore.version` rises with every change here. Both implementations pass test/contract/ratio-store.
 */
export interface RatioStore {
  ratioSettings(): Promise<RatioSettings>;
  /**
   * Writes the given classes. A null value removes its override, and all other classes stay. Returns false when there is no such aggregate.
   */
  changeRatios(scope: RatioScope, changes: Readonly<Record<string, number | null>>): Promise<boolean>;
}

/** Returns the ratios after a change, in which a null value removes its class. */
export function changedRatios(ratios: Ratios, changes: Readonly<Record<string, number | null>>): Ratios {
  const changed = new Map(Object.entries(ratios));
  for (const [name, ratio] of Object.entries(changes)) {
    if (ratio === null) changed.delete(name);
    else changed.set(name, ratio);
  }
  return Object.fromEntries(changed);
}
