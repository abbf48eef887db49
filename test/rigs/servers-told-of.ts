import { ScheduleRequest } from "../../proto/gen/berth/scheduler.ts";

/** The servers of the requests that a message to the schedulers names. */
export function serversToldOf(data: Uint8Array): readonly string[] {
  const { serverUuid, more } = ScheduleRequest.decode(data);
  return [serverUuid, ...more];
}
