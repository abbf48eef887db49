import { textArrayLiteral } from "../client/literals.ts";
import type { StoreQuery } from "../client/store-query.ts";

/** Finds the servers of which another guest than that of this attempt is in quarantine, and may run. Each row is one `server_uuid`. */
export function othersInQuarantine(
  starts: readonly { readonly serverUuid: string; readonly attemptId: string }[],
): StoreQuery {
  return {
    name: "others_in_quarantine",
    text: `select q.server_uuid from unnest($1::text[], $2::text[]) as w (server_uuid, attempt_id)
      join quarantined_guests q on q.server_uuid = w.server_uuid and q.attempt_id <> w.attempt_id and not q.condemned`,
    values: [
      textArrayLiteral(starts.map(({ serverUuid }) => serverUuid)),
      textArrayLiteral(starts.map(({ attemptId }) => attemptId)),
    ],
  };
}
