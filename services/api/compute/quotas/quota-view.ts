import { QUOTA_RESOURCES, type QuotaResource } from "../../../../core/stores/api/quota-limits.ts";

const NETWORK: readonly QuotaResource[] = ["fixed_ips", "floating_ips", "security_groups", "security_group_rules"];
const FILES: readonly QuotaResource[] = ["injected_files", "injected_file_content_bytes", "injected_file_path_bytes"];
const GROUPS: readonly QuotaResource[] = ["server_groups", "server_group_members"];

/** Microversions of the Compute API from which on its answers lack the quotas of networks and of injected files. */
const NETWORK_UNTIL = 35;
const NETWORK_OF_CLASSES_UNTIL = 49;
const FILES_UNTIL = 56;
const GROUPS_OF_CLASSES_FROM = 50;

/** The resources of quota sets in a microversion. */
export function resourcesOfSets(minor: number): readonly QuotaResource[] {
  return without([...(minor > NETWORK_UNTIL ? NETWORK : []), ...(minor > FILES_UNTIL ? FILES : [])]);
}

/** The resources that answers about a quota class show in a microversion. */
export function resourcesOfClasses(minor: number): readonly QuotaResource[] {
  return without([
    ...(minor > NETWORK_OF_CLASSES_UNTIL ? NETWORK : []),
    ...(minor > FILES_UNTIL ? FILES : []),
    ...(minor < GROUPS_OF_CLASSES_FROM ? GROUPS : []),
  ]);
}

/** The resources of a quota class that a microversion can change. Those of server groups could be changed before they were shown. */
export function changeableOfClasses(minor: number): readonly QuotaResource[] {
  return [...resourcesOfClasses(minor), ...(minor < GROUPS_OF_CLASSES_FROM ? GROUPS : [])];
}

function without(hidden: readonly QuotaResource[]): readonly QuotaResource[] {
  return QUOTA_RESOURCES.filter((resource) => !hidden.includes(resource));
}

/** Returns the values of these resources. */
export function pickResources<Value>(
  resources: readonly QuotaResource[],
  read: (resource: QuotaResource) => Value,
): Record<string, Value> {
  return Object.fromEntries(resources.map((resource) => [resource, read(resource)]));
}
