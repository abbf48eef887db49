import type { QuotaLimits } from "../../../../core/stores/api/quota-limits.ts";

/** The limits of a project for which operators have set none. */
export const QUOTA_KINDS = ["nova", "unlimited"] as const;
export type QuotaKind = (typeof QUOTA_KINDS)[number];

/** The defaults of Nova (source: its configuration reference, group `quota`). The last four resources belong to Neutron, and are not limited. */
const NOVA_DEFAULTS: QuotaLimits = {
  cores: 20,
  injected_files: 5,
  injected_file_content_bytes: 10_240,
  injected_file_path_bytes: 255,
  instances: 10,
  key_pairs: 100,
  metadata_items: 128,
  ram: 51_200,
  server_groups: 10,
  server_group_members: 10,
  fixed_ips: -1,
  floating_ips: -1,
  security_groups: -1,
  security_group_rules: -1,
};

/**
 * Without quotas projects have as many servers as fit. The contents of one request are still limited, and so are server groups, because
 * every check reads their members.
 */
const UNLIMITED_SERVERS: QuotaLimits = {
  ...NOVA_DEFAULTS,
  cores: -1,
  instances: -1,
  key_pairs: -1,
  ram: -1,
  server_groups: 100,
  server_group_members: 1_000,
};

export const QUOTA_DEFAULTS: Readonly<Record<QuotaKind, QuotaLimits>> = {
  nova: NOVA_DEFAULTS,
  unlimited: UNLIMITED_SERVERS,
};
