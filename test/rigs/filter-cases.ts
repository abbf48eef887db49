import { providerUuid } from "../../core/ledger/ids.ts";
import type { AggregateRecord } from "../../core/scheduling/aggregate-record.ts";
import type { FilterName } from "../../core/scheduling/filters/filter-names.ts";
import { bindFilters, hostFilters, refusedBy } from "../../core/scheduling/filters/host-filters.ts";
import {
  readSchedulingSettings,
  type SchedulingSettings,
  type StoredSchedulingSettings,
} from "../../core/scheduling/scheduling-settings.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { type HostOptions, sceneOf } from "./facts-builders.ts";

/** The hosts, aggregates, request and settings of a case. `passes` lists the remaining hosts. */
export interface FilterCase {
  readonly title: string;
  readonly hosts: Readonly<Record<string, HostOptions>>;
  readonly aggregates?: readonly AggregateRecord[];
  readonly spec: ServerSpec;
  readonly settings?: StoredSchedulingSettings;
  readonly passes: string;
}

/** Settings that are known to be valid. */
export const settingsOf = (stored: StoredSchedulingSettings): SchedulingSettings => {
  const outcome = readSchedulingSettings(stored);
  if (outcome.kind === "refused") throw new Error(JSON.stringify(outcome.refusals));
  return outcome.settings;
};

/** Names of the case's hosts that pass the filter. */
export function passing(
  filter: FilterName,
  { hosts, aggregates, spec, settings = {} }: FilterCase,
  scene = sceneOf(hosts, aggregates),
): string {
  const filters = hostFilters(settingsOf({ ...settings, enabled_filters: [filter] }));
  const bound = bindFilters(filters, spec, scene);
  return Object.keys(hosts)
    .filter((name) => {
      const facts = scene.facts.at(scene.view.slots.find(providerUuid(name)))!;
      return refusedBy([...bound.kind, ...bound.request], facts) === null;
    })
    .join(" ");
}
