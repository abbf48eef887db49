import { ScheduleRequest } from "../../proto/gen/berth/scheduler.ts";
import { encodeMessage } from "../../runtime/encode-message.ts";

const NO_SPEC = Buffer.alloc(0);
/** A message carries specs of at most this size: copying a larger one through the queue would cost more than reading it from its row. */
const SPEC_BYTES_MAX = 8_192;

/**
 * The message that tells schedulers of accepted requests. It only names the requests, because a message must never be too large to be
 * published; but a small `spec`, of a request that has the message for itself, goes along.
 */
export function messageOfRequest(
  serverUuid: string,
  more: readonly string[] = [],
  spec: Uint8Array = NO_SPEC,
): Uint8Array {
  return encodeMessage(ScheduleRequest, {
    server: undefined,
    move: undefined,
    serverUuid,
    moveId: "",
    more: [...more],
    spec: more.length === 0 && spec.length <= SPEC_BYTES_MAX ? Buffer.from(spec) : NO_SPEC,
  });
}

/** The message that tells schedulers of an accepted move. */
export function messageOfMove(moveId: string): Uint8Array {
  const none = { server: undefined, move: undefined, serverUuid: "", more: [], spec: NO_SPEC };
  return encodeMessage(ScheduleRequest, { ...none, moveId });
}
