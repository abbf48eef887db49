import type { SchedulerSettings } from "./settings.ts";
import type { RequestIntake } from "./take-requests.ts";

/** Where sweeps hand over what they find: to this very scheduler, so that nothing of it depends on the bus. */
export type SweepIntake = Pick<RequestIntake, "offer" | "room">;

/** What a sweep takes even while the intake is full: a backlog may last, and what nobody works on is in no queue. */
const BUSY_ROOM = 16;

/** How much a sweep may hand over now. */
export function sweepRoom(intake: SweepIntake, { sweepLimit }: Pick<SchedulerSettings, "sweepLimit">): number {
  return Math.min(sweepLimit, Math.max(BUSY_ROOM, intake.room));
}
