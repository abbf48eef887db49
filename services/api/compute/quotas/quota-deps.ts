import type { QuotaStore } from "../../../../core/stores/api/quota-store.ts";
import type { ServerGroupsPort } from "../../ports.ts";
import type { ProjectLimits } from "./project-limits.ts";

export interface QuotaDeps {
  readonly store: QuotaStore;
  readonly groups: Pick<ServerGroupsPort, "countGroups">;
  readonly limits: ProjectLimits;
}
