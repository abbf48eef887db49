import type { Clock } from "../../../runtime/clock.ts";
import type { DecisionRecorder } from "../decision-recorder.ts";
import type { SchedulerEvents } from "../events.ts";
import type { SchedulerGroups } from "../ports.ts";
import type { ClaimReserver } from "./claim-reserver.ts";
import type { RequestWrites } from "./request-writes.ts";
import type { SchedulerViews } from "./scheduler-views.ts";

/** What the placing of a new server reaches. */
export interface PlacingParts {
  /** What hosts are chosen from. */
  readonly views: SchedulerViews;
  /** This scheduler's claims on their way. */
  readonly claims: ClaimReserver;
  /** The rows of requests and of server groups, in the API database. */
  readonly requests: Pick<RequestWrites, "assign" | "fail">;
  readonly groups: SchedulerGroups;
  /** Where it is kept how requests were decided. */
  readonly decisions: DecisionRecorder;
  readonly events: SchedulerEvents;
  readonly clock: Clock;
  readonly newId: () => string;
}
