/** All host filters, under Nova's names. */
export const FILTER_NAMES = [
  "AggregateImagePropertiesIsolation",
  "AggregateInstanceExtraSpecsFilter",
  "AggregateIoOpsFilter",
  "AggregateMultiTenancyIsolation",
  "AggregateNumInstancesFilter",
  "AggregateTypeAffinityFilter",
  "AllHostsFilter",
  "AvailabilityZoneFilter",
  "ComputeCapabilitiesFilter",
  "ComputeFilter",
  "DifferentHostFilter",
  "ImagePropertiesFilter",
  "IoOpsFilter",
  "IsolatedHostsFilter",
  "JsonFilter",
  "MetricsFilter",
  "NUMATopologyFilter",
  "NumInstancesFilter",
  "PciPassthroughFilter",
  "SameHostFilter",
  "ServerGroupAffinityFilter",
  "ServerGroupAntiAffinityFilter",
  "SimpleCIDRAffinityFilter",
] as const;

export type FilterName = (typeof FILTER_NAMES)[number];
