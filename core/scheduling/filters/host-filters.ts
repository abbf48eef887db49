import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { HostFacts } from "../host-facts.ts";
import type { SchedulingSettings } from "../scheduling-settings.ts";
import { aggregateImagePropertiesIsolation } from "./aggregate-image-properties-isolation.ts";
import { aggregateInstanceExtraSpecsFilter } from "./aggregate-instance-extra-specs-filter.ts";
import { aggregateMultiTenancyIsolation } from "./aggregate-multi-tenancy-isolation.ts";
import { aggregateTypeAffinityFilter } from "./aggregate-type-affinity-filter.ts";
import { allHostsFilter } from "./all-hosts-filter.ts";
import { availabilityZoneFilter } from "./availability-zone-filter.ts";
import { computeCapabilitiesFilter } from "./compute-capabilities-filter.ts";
import { computeFilter } from "./compute-filter.ts";
import { differentHostFilter } from "./different-host-filter.ts";
import { FILTER_NAMES, type FilterName } from "./filter-names.ts";
import { guardFilter } from "./guard-filter.ts";
import type { FilteredCell, HostCheck, HostFilter } from "./host-filter.ts";
import { imagePropertiesFilter } from "./image-properties-filter.ts";
import { aggregateIoOpsFilter, ioOpsFilter } from "./io-ops-filter.ts";
import { isolatedHostsFilter } from "./isolated-hosts-filter.ts";
import { jsonFilter } from "./json-filter.ts";
import { metricsFilter } from "./metrics-filter.ts";
import { aggregateNumInstancesFilter, numInstancesFilter } from "./num-instances-filter.ts";
import { numaTopologyFilter } from "./numa-topology-filter.ts";
import { pciPassthroughFilter } from "./pci-passthrough-filter.ts";
import { sameHostFilter } from "./same-host-filter.ts";
import { serverGroupAffinityFilter } from "./server-group-affinity-filter.ts";
import { serverGroupAntiAffinityFilter } from "./server-group-anti-affinity-filter.ts";
import { simpleCidrAffinityFilter } from "./simple-cidr-affinity-filter.ts";

/** Makes each filter there is as the settings want it. */
const FILTERS: Readonly<Record<FilterName, (settings: SchedulingSettings) => HostFilter>> = {
  AggregateImagePropertiesIsolation: aggregateImagePropertiesIsolation,
  AggregateInstanceExtraSpecsFilter: () => aggregateInstanceExtraSpecsFilter,
  AggregateIoOpsFilter: aggregateIoOpsFilter,
  AggregateMultiTenancyIsolation: () => aggregateMultiTenancyIsolation,
  AggregateNumInstancesFilter: aggregateNumInstancesFilter,
  AggregateTypeAffinityFilter: () => aggregateTypeAffinityFilter,
  AllHostsFilter: () => allHostsFilter,
  AvailabilityZoneFilter: () => availabilityZoneFilter,
  ComputeCapabilitiesFilter: () => computeCapabilitiesFilter,
  ComputeFilter: () => computeFilter,
  DifferentHostFilter: () => differentHostFilter,
  ImagePropertiesFilter: imagePropertiesFilter,
  IoOpsFilter: ioOpsFilter,
  IsolatedHostsFilter: isolatedHostsFilter,
  JsonFilter: () => jsonFilter,
  MetricsFilter: metricsFilter,
  NUMATopologyFilter: () => numaTopologyFilter,
  NumInstancesFilter: numInstancesFilter,
  PciPassthroughFilter: pciPassthroughFilter,
  SameHostFilter: () => sameHostFilter,
  ServerGroupAffinityFilter: () => serverGroupAffinityFilter,
  ServerGroupAntiAffinityFilter: () => serverGroupAntiAffinityFilter,
  SimpleCIDRAffinityFilter: () => simpleCidrAffinityFilter,
};

const made = new WeakMap<SchedulingSettings, WeakMap<readonly HostFilter[], readonly HostFilter[]>>();
const NO_FILTERS: readonly HostFilter[] = [];

/**
 * The enabled filters, in order, after them what weighed metrics require, and at last the cloud's `own`, which no setting turns off and
 * which refuse where they throw. Remembered by both arguments.
 */
export function hostFilters(
  settings: SchedulingSettings,
  own: readonly HostFilter[] = NO_FILTERS,
): readonly HostFilter[] {
  const known = made.get(settings)?.get(own);
  if (known) return known;
  const { enabledFilters, metricsRequired, multipliers } = settings;
  const names = new Set(enabledFilters);
  if (metricsRequired && multipliers.metrics !== 0) names.add("MetricsFilter");
  const filters = [...[...names].map((name) => FILTERS[name](settings)), ...own.map(guardFilter)];
  const ofSettings = made.get(settings) ?? new WeakMap<readonly HostFilter[], readonly HostFilter[]>();
  made.set(settings, ofSettings.set(own, filters));
  return filters;
}

/** Why these cannot be a cloud's own filters; null: they can. Verdicts are kept by name, so each has one of its own. */
export function nameClash(own: readonly HostFilter[]): string | null {
  const taken = new Set<string>(FILTER_NAMES);
  for (const { name } of own) {
    if (taken.has(name)) return `there are two host filters of the name ${name}`;
    taken.add(name);
  }
  return null;
}

/** A filter that has something to say of a request, as bound to it and a cell. */
export interface BoundFilter {
  readonly name: string;
  readonly check: HostCheck;
}

/** What the enabled filters say of one request and the hosts of one cell. Use it before the view changes. */
export interface BoundFilters {
  /** Whose verdicts equal requests share, as long as the host stays as it is. */
  readonly kind: readonly BoundFilter[];
  /** Whose verdicts are of this very request. */
  readonly request: readonly BoundFilter[];
}

/** Why a host is out of the question, and by which filter. */
export interface FilterVerdict {
  readonly filter: string;
  readonly reason: string;
}

/** Binds filters to a request and a cell as they are now. A host that an administrator forced is asked of none. */
export function bindFilters(filters: readonly HostFilter[], spec: ServerSpec, cell: FilteredCell): BoundFilters {
  const kind: BoundFilter[] = [];
  const request: BoundFilter[] = [];
  if (spec.forcedHost !== "") return { kind, request };
  for (const filter of filters) {
    const check = filter.bind(spec, cell);
    if (check) (filter.decidedBy === "kind" ? kind : request).push({ name: filter.name, check });
  }
  return { kind, request };
}

/** The first filter that a host does not pass; null: it passes all. */
export function refusedBy(filters: readonly BoundFilter[], host: HostFacts): FilterVerdict | null {
  for (const { name, check } of filters) {
    const reason = check(host);
    if (reason !== null) return { filter: name, reason };
  }
  return null;
}
