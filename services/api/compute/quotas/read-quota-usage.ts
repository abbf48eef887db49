import { NO_SERVERS, type QuotaResource } from "../../../../core/stores/api/quota-limits.ts";
import type { QuotaScope } from "../../../../core/stores/api/quota-store.ts";
import type { QuotaDeps } from "./quota-deps.ts";

/**
 * Reads the use of a project, or of a user in it. Resources that are left out have 0: like Nova, keypairs and members of groups are
 * counted only where they are limited. Server groups are always the project's.
 */
export async function readQuotaUsage(
  { store, groups }: Pick<QuotaDeps, "store" | "groups">,
  { projectId, userId }: QuotaScope,
): Promise<Partial<Record<QuotaResource, number>>> {
  const [usage, serverGroups] = await Promise.all([store.usage(projectId), groups.countGroups(projectId)]);
  const servers = userId === null ? usage.ofProject : (usage.ofUsers.get(userId) ?? NO_SERVERS);
  return { ...servers, server_groups: serverGroups };
}
