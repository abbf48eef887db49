import type { QuotaResource } from "../../../../core/stores/api/quota-limits.ts";

/** The names of the resources in Keystone; null for those of Neutron, which no limit of the compute service has. Source: `nova.limit`. */
export const UNIFIED_NAMES = {
  cores: "class:VCPU",
  instances: "servers",
  ram: "class:MEMORY_MB",
  key_pairs: "server_key_pairs",
  server_groups: "server_groups",
  server_group_members: "server_group_members",
  metadata_items: "server_metadata_items",
  injected_files: "server_injected_files",
  injected_file_content_bytes: "server_injected_file_content_bytes",
  injected_file_path_bytes: "server_injected_file_path_bytes",
  fixed_ips: null,
  floating_ips: null,
  security_groups: null,
  security_group_rules: null,
} as const satisfies Readonly<Record<QuotaResource, string | null>>;
