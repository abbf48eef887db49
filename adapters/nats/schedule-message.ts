import { ScheduleRequest } from "../../proto/gen/berth/scheduler.ts";
import { encodeMessage } from "../../runtime/encode-message.ts";

/**
 * The message that tells schedulers of accepted requests. It only names the requests, because a message must never be too large to be
 * published.
 */
export function messageOfRequest(serverUuid: string, more: readonly string[] = []): Uint8Array {
  return encodeMessage(ScheduleRequest, {
    server: undefined,
    move: undefined,
    serverUuid,
    moveId: "",
    more: [...more],
  });
}

/** The message that tells schedulers of an accepted move. */
export function messageOfMove(moveId: string): Uint8Array {
  return encodeMessage(ScheduleRequest, { server: undefined, move: undefined, serverUuid: "", moveId, more: [] });
}
