import type { PoolClient } from "pg";
import { MOVE_BROKEN_OFF, MOVE_IN_DOUBT } from "../../../core/stores/cell/operation-store.ts";
import { GUEST_IN_QUARANTINE, SERVER_UNCERTAIN } from "../../../core/stores/cell/quarantine.ts";
import { operationOf } from "../../../core/tasks/operation-record.ts";
import type { BeginOperation } from "../../../core/tasks/operation-step.ts";
import { startsGuest } from "../../../core/tasks/starts-guest.ts";
import { textArrayLiteral } from "../client/literals.ts";
import { queryRows } from "../client/store-query.ts";

/** Why an operation of a server does not begin, because the server may run elsewhere than at home. */
export interface Astray {
  /** Its last move was broken off, so its allocations are not all at its home; or the database has lost commits about it. */
  readonly broken: typeof MOVE_BROKEN_OFF | typeof MOVE_IN_DOUBT | typeof SERVER_UNCERTAIN | null;
  /** A guest of it is in quarantine, which may run. */
  readonly quarantined: typeof GUEST_IN_QUARANTINE | null;
}

/** The servers for whose operations there may be such a reason. The batch must name each server once. Cost: one round trip, or none. */
export async function readAstray(
  client: PoolClient,
  begins: readonly BeginOperation[],
): Promise<ReadonlyMap<string, Astray>> {
  const asked = new Map(begins.map((begin) => [operationOf(begin.task).server.uuid, checksOf(begin)]));
  const uuids = [...asked].flatMap(([uuid, { inError, isStart }]) => (inError || isStart ? uuid : []));
  if (uuids.length === 0) return new Map();
  const rows = await queryRows<{
    uuid: string;
    has_open_move: boolean;
    is_unconfirmed: boolean;
    is_uncertain: boolean;
    is_in_quarantine: boolean;
  }>(client, {
    name: "servers_astray",
    text: `select * from (
        select s.uuid, s.uncertain_since is not null as is_uncertain,
          exists (select from migrations m where m.server_uuid = s.uuid and not m.ended) as has_open_move,
          exists (select from migrations m where m.server_uuid = s.uuid and not m.ended and m.status = 'finished') as is_unconfirmed,
          exists (select from quarantined_guests q where q.server_uuid = s.uuid::text and q.holds and not q.condemned) as is_in_quarantine
        from servers s where s.uuid = any ($1)
      ) as s where is_uncertain or has_open_move or is_in_quarantine`,
    values: [textArrayLiteral(uuids)],
  });
  return new Map(
    rows.map((row): [string, Astray] => {
      const { inError, isStart } = asked.get(row.uuid) ?? { inError: false, isStart: false };
      const uncertain = row.is_uncertain && isStart ? SERVER_UNCERTAIN : null;
      return [
        row.uuid,
        {
          broken: row.has_open_move && inError ? (row.is_unconfirmed ? MOVE_IN_DOUBT : MOVE_BROKEN_OFF) : uncertain,
          quarantined: row.is_in_quarantine && isStart ? GUEST_IN_QUARANTINE : null,
        },
      ];
    }),
  );
}

function checksOf({ task, status }: BeginOperation): { readonly inError: boolean; readonly isStart: boolean } {
  return { inError: status === "ERROR", isStart: startsGuest(operationOf(task).kind) };
}
