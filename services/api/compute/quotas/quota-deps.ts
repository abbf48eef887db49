import type { QuotaStore } from "../../../../core/stores/api/quota-store.ts";
import type { IsUnknownProject } from "../../http/refuse-unknown-project.ts";
import type { ServerGroupsPort } from "../../ports.ts";
import type { ProjectLimits } from "./project-limits.ts";

/** The limits and the use that quota sets and classes show, and the limits that they change. */
export interface QuotaSets
  extends Pick<QuotaStore, "limits" | "setLimits" | "forgetLimits" | "classLimits" | "setClassLimits" | "usage"> {
  /** False where another service has the limits: changes are then taken without an effect. */
  readonly isChangeable: boolean;
}

export interface QuotaDeps {
  readonly store: QuotaSets;
  readonly groups: Pick<ServerGroupsPort, "countGroups">;
  readonly limits: ProjectLimits;
  /** Null where projects are not Keystone's. */
  readonly isUnknownProject: IsUnknownProject | null;
}
