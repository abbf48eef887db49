import { Fault } from "../http/fault.ts";

/**
 * Returns the error of a call whose image would be one more than its project may have. Nova answers 403 when a quota is exceeded, Glance
 * answers 413.
 */
export function tooManyImages(status: 403 | 413, projectId: string, ownedMax: number | null): Fault {
  return new Fault(
    status,
    `Quota exceeded for images: project ${projectId} may have ${ownedMax}. Delete images that are not needed, or ask an operator to raise BERTH_IMAGES_PER_PROJECT_MAX.`,
  );
}
