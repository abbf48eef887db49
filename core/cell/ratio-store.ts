import type { Ratios } from "./host-admin-store.ts";

/** Whose ratios are set: all hosts of an aggregate, or one host. */
export type RatioScope =
  | { readonly kind: "aggregate"; readonly id: number }
  | { readonly kind: "host"; readonly host: string };

/** Everything that is set, by aggregate's id and by host. */
export interface RatioSettings {
  readonly byAggregate: ReadonlyMap<number, Ratios>;
  readonly byHost: ReadonlyMap<string, Ratios>;
}

/**
 * Allocation ratios that operators set. They live with the aggregates: a deleted aggregate's ratios go with it, and
 * `AggregateStore.version` rises with every change here. Both bodies pass test/contract/ratio-store.
 */
export interface RatioStore {
  ratioSettings(): Promise<RatioSettings>;
  /** Writes the classes given; null takes one back. The others stay. False: no such aggregate. */
  changeRatios(scope: RatioScope, changes: Readonly<Record<string, number | null>>): Promise<boolean>;
}

/** The ratios after a change; null takes one back. */
export function changedRatios(ratios: Ratios, changes: Readonly<Record<string, number | null>>): Ratios {
  const changed = new Map(Object.entries(ratios));
  for (const [name, ratio] of Object.entries(changes)) {
    if (ratio === null) changed.delete(name);
    else changed.set(name, ratio);
  }
  return Object.fromEntries(changed);
}
