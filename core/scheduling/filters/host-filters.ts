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

/** Makes each filter from the settings. */
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
 * The filters in order: the enabled ones, then the filter for required metrics, and finally the cloud's `own` filters. No setting turns off
 * the cloud's own filters, and they refuse a host when they throw. The list is remembered by both arguments.
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

/** Why these cannot be a cloud's own filters, or null when they can. Verdicts are stored by filter name, so names must be unique. */
export function nameClash(own: readonly HostFilter[]): string | null {
  const taken = new Set<string>(FILTER_NAMES);
  for (const { name } of own) {
    if (taken.has(name)) return `there are two host filters named ${name}`;
    taken.add(name);
  }
  return null;
}

/** A filter that applies to a request, bound to it and to a cell. */
export interface BoundFilter {
  readonly name: string;
  readonly check: HostCheck;
}

/** The enabled filters, bound to one request and the hosts of one cell. Use them before the view changes. */
export interface BoundFilters {
  /** Filters whose verdicts equal requests share while the host does not change. */
  readonly kind: readonly BoundFilter[];
  /** Filters whose verdicts are valid for this request only. */
  readonly request: readonly BoundFilter[];
}

/** The filter that refused a host, and its reason. */
export interface FilterVerdict {
  readonly filter: string;
  readonly reason: string;
}

/** Binds filters to the current state of a request and a cell. No filter applies to a host that an administrator forced. */
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

/** The verdict of the first filter that refuses a host, or null when the host passes all. */
export function refusedBy(filters: readonly BoundFilter[], host: HostFacts): FilterVerdict | null {
  for (const { name, check } of filters) {
    const reason = check(host);
    if (reason !== null) return { filter: name, reason };
  }
  return null;
}
