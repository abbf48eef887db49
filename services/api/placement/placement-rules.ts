/** Names of the rules, one for each thing that can be done: the names of upstream's policy file. */
export const RULES = {
  providersList: "placement:resource_providers:list",
  providersCreate: "placement:resource_providers:create",
  providersShow: "placement:resource_providers:show",
  providersUpdate: "placement:resource_providers:update",
  providersDelete: "placement:resource_providers:delete",
  inventoriesList: "placement:resource_providers:inventories:list",
  inventoriesCreate: "placement:resource_providers:inventories:create",
  inventoriesShow: "placement:resource_providers:inventories:show",
  inventoriesUpdate: "placement:resource_providers:inventories:update",
  inventoriesDelete: "placement:resource_providers:inventories:delete",
  aggregatesList: "placement:resource_providers:aggregates:list",
  aggregatesUpdate: "placement:resource_providers:aggregates:update",
  providerTraitsList: "placement:resource_providers:traits:list",
  providerTraitsUpdate: "placement:resource_providers:traits:update",
  providerTraitsDelete: "placement:resource_providers:traits:delete",
  providerAllocationsList: "placement:resource_providers:allocations:list",
  providerUsages: "placement:resource_providers:usages",
  classesList: "placement:resource_classes:list",
  classesCreate: "placement:resource_classes:create",
  classesShow: "placement:resource_classes:show",
  classesUpdate: "placement:resource_classes:update",
  classesDelete: "placement:resource_classes:delete",
  traitsList: "placement:traits:list",
  traitsShow: "placement:traits:show",
  traitsUpdate: "placement:traits:update",
  traitsDelete: "placement:traits:delete",
  allocationsList: "placement:allocations:list",
  allocationsManage: "placement:allocations:manage",
  allocationsUpdate: "placement:allocations:update",
  allocationsDelete: "placement:allocations:delete",
  candidatesList: "placement:allocation_candidates:list",
  reshape: "placement:reshaper:reshape",
  usages: "placement:usages",
} as const;
export type RuleName = (typeof RULES)[keyof typeof RULES];

/** The rules to which other rules refer. */
const BASE = {
  admin_api: "role:admin",
  service_api: "role:service",
  admin_or_service_api: "role:admin or role:service",
  project_reader_api: "role:reader and project_id:%(project_id)s",
  admin_or_project_reader_or_service_api: "role:admin or rule:project_reader_api or role:service",
};

/** Secure RBAC: upstream's defaults with `enforce_new_defaults`. */
export function secureDefaults(): Readonly<Record<string, string>> {
  const special: Readonly<Partial<Record<RuleName, string>>> = {
    [RULES.reshape]: "rule:service_api",
    [RULES.usages]: "rule:admin_or_project_reader_or_service_api",
  };
  return {
    ...BASE,
    ...Object.fromEntries(Object.values(RULES).map((rule) => [rule, special[rule] ?? "rule:admin_or_service_api"])),
  };
}

/**
 * Legacy: upstream's defaults without `enforce_new_defaults`, where the base rules that took over from `admin_api` accept what
 * it accepted, too. (oslo.policy joins a deprecated rule's old check to the new one with `or`.)
 */
export function legacyDefaults(): Readonly<Record<string, string>> {
  const successors = [
    "service_api",
    "admin_or_service_api",
    "project_reader_api",
    "admin_or_project_reader_or_service_api",
  ] as const;
  const widened = successors.map((name) => [name, `(${BASE[name]}) or role:admin`]);
  return { ...secureDefaults(), ...Object.fromEntries(widened) };
}
