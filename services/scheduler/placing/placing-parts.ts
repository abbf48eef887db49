import type { Clock } from "../../../runtime/clock.ts";
import type { DecisionRecorder } from "../decision-recorder.ts";
import type { SchedulerEvents } from "../events.ts";
import type { SchedulerGroups } from "../ports.ts";
import type { ClaimReserver } from "./claim-reserver.ts";
import type { RequestWrites } from "./request-writes.ts";
import type { SchedulerViews } from "./scheduler-views.ts";

/** The collaborators that place a new server. */
export interface PlacingParts {
  /** The views from which hosts are chosen. */
  readonly views: SchedulerViews;
  /** This scheduler's claims whose outcome its views do not show yet. */
  readonly claims: ClaimReserver;
  /** Access to the rows of requests and of server groups in the API database. */
  readonly requests: Pick<RequestWrites, "assign" | "fail">;
  readonly groups: SchedulerGroups;
  /** Records how requests were decided. */
  readonly decisions: DecisionRecorder;
  readonly events: SchedulerEvents;
  readonly clock: Clock;
  readonly newId: () => string;
}
