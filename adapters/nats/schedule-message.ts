import { ScheduleRequest } from "../../proto/gen/berth/scheduler.ts";
import { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { encodeMessage } from "../../runtime/encode-message.ts";
import { encodeOnce } from "../../runtime/encode-once.ts";

/** A message must never be too large to be published, and a longer spec costs the bus more than a scheduler's look at the row. */
const SPEC_BYTES_MAX = 4_096;
const NOTHING = Buffer.alloc(0);

/** The message that tells schedulers of an accepted request. It only names the request. */
export function messageOfRequest(serverUuid: string): Uint8Array {
  return encodeMessage(ScheduleRequest, { server: undefined, move: undefined, serverUuid, moveId: "", spec: NOTHING });
}

/** The same message with the request itself, if that is short and of one server alone. */
export function messageWithSpec(spec: ServerSpec): Uint8Array {
  const encoded = spec.reservationId === "" ? Buffer.from(encodeOnce(ServerSpec, spec)) : NOTHING;
  if (encoded.length === 0 || encoded.length > SPEC_BYTES_MAX) return messageOfRequest(spec.uuid);
  const named = { server: undefined, move: undefined, serverUuid: spec.uuid, moveId: "" };
  return encodeMessage(ScheduleRequest, { ...named, spec: encoded });
}

/** The message that tells schedulers of an accepted move. */
export function messageOfMove(moveId: string): Uint8Array {
  return encodeMessage(ScheduleRequest, { server: undefined, move: undefined, serverUuid: "", moveId, spec: NOTHING });
}
