import type { AggregateRecord } from "./aggregate-store.ts";
import type { Ratios } from "./host-admin-store.ts";
import type { RatioSettings } from "./ratio-store.ts";

/** A ratio that overrides the agent's, and who says so. */
export interface EffectiveRatio {
  readonly ratio: number;
  readonly source: { readonly kind: "host" } | { readonly kind: "aggregate"; readonly name: string };
}

/**
 * The ratios that stand over what a host's agent reports, by class: the host's own; else the lowest of its aggregates' (as
 * Nova's aggregate filters take it), the first such aggregate named. `aggregates`: those that the host is in, by id.
 */
export function effectiveRatios(
  host: string,
  aggregates: readonly AggregateRecord[],
  settings: RatioSettings,
): ReadonlyMap<string, EffectiveRatio> {
  const effective = new Map<string, EffectiveRatio>();
  for (const { id, name } of aggregates) {
    for (const [key, ratio] of Object.entries(settings.byAggregate.get(id) ?? {})) {
      const known = effective.get(key);
      if (known === undefined || ratio < known.ratio)
        effective.set(key, { ratio, source: { kind: "aggregate", name } });
    }
  }
  for (const [key, ratio] of Object.entries(settings.byHost.get(host) ?? {}))
    effective.set(key, { ratio, source: { kind: "host" } });
  return effective;
}

/** The same without the sources: what a cell is to hold. */
export function ratiosOf(effective: ReadonlyMap<string, EffectiveRatio>): Ratios {
  return Object.fromEntries(Array.from(effective, ([key, { ratio }]) => [key, ratio]));
}
