import type { AggregateRecord } from "../../scheduling/aggregate-record.ts";
import type { Ratios } from "../cell/host-admin-store.ts";
import type { RatioSettings } from "./ratio-store.ts";

/** A ratio that overrides the agent's, and its source. */
export interface EffectiveRatio {
  readonly ratio: number;
  readonly source: { readonly kind: "host" } | { readonly kind: "aggregate"; readonly name: string };
}

/**
 * The ratios that override what a host's agent reports, by resource class. The host's own ratio wins. Otherwise the lowest ratio of the
 * host's aggregates applies, as in Nova's aggregate filters, and the first aggregate with that ratio is named. `aggregates` are those of
 * the host, by id.
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

/** The effective ratios without their sources, as a cell stores them. */
export function ratiosOf(effective: ReadonlyMap<string, EffectiveRatio>): Ratios {
  return Object.fromEntries(Array.from(effective, ([key, { ratio }]) => [key, ratio]));
}
