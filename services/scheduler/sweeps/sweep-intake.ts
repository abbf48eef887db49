import type { RequestIntake } from "../request-intake.ts";
import type { SchedulerSettings } from "../settings.ts";

/**
 * The part of the intake to which sweeps hand the requests they find. It belongs to the same process, so that sweeps do not depend on the
 * bus.
 */
export type SweepIntake = Pick<RequestIntake, "offer" | "room">;

/**
 * Number of requests that a sweep hands over even while the intake is full: a backlog may last long, and requests that no scheduler works on
 * are in no queue.
 */
const BUSY_ROOM = 16;

/** Returns how many requests a sweep may hand over now. */
export function sweepRoom(intake: SweepIntake, { sweepLimit }: Pick<SchedulerSettings, "sweepLimit">): number {
  return Math.min(sweepLimit, Math.max(BUSY_ROOM, intake.room));
}
