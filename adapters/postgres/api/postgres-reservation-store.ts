import type { Pool } from "pg";
import type {
  Reservation,
  ReservationDecision,
  ReservationRecord,
  ReservationStore,
} from "../../../core/stores/api/reservation-store.ts";
import { textArrayLiteral } from "../client/literals.ts";
import { queryStored } from "../client/store-query.ts";

interface ReservationRow {
  readonly id: string;
  readonly server_uuids: readonly string[];
  readonly min_count: number;
  readonly decision: ReservationDecision | null;
  readonly fault: string | null;
}

const COLUMNS = "id, server_uuids::text[] as server_uuids, min_count, decision, fault";

/** Reservations of multi-create calls, in the API database. */
export class PostgresReservationStore implements ReservationStore {
  readonly #pool: Pool;

  /** The caller keeps the pool and ends it. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async reserve({ id, serverUuids, minCount }: Reservation): Promise<void> {
    await queryStored(this.#pool, {
      name: "reserve",
      text: "insert into reservations (id, server_uuids, min_count) values ($1, $2, $3) on conflict do nothing",
      values: [id, textArrayLiteral(serverUuids), minCount],
    });
  }

  async reservation(id: string): Promise<ReservationRecord | null> {
    const [row] = await queryStored<ReservationRow>(this.#pool, {
      name: "reservation",
      text: `select ${COLUMNS} from reservations where id = $1`,
      values: [id],
    });
    return row === undefined ? null : recordOf(row);
  }

  /** The row's lock serialises concurrent callers. The second one finds the first one's decision, and writes it again. */
  async decide(id: string, decision: ReservationDecision, fault: string | null): Promise<ReservationRecord | null> {
    const [row] = await queryStored<ReservationRow>(this.#pool, {
      name: "decide_reservation",
      text: `update reservations
        set decision = coalesce(decision, $2), fault = case when decision is null then $3 else fault end
        where id = $1 returning ${COLUMNS}`,
      values: [id, decision, fault],
    });
    return row === undefined ? null : recordOf(row);
  }

  async purge(olderMs: number, limit: number): Promise<number> {
    const rows = await queryStored(this.#pool, {
      name: "purge_reservations",
      text: `delete from reservations where id in (
          select v.id from reservations v
          where v.created_at <= now() - $1::float8 * interval '1 ms'
            and not exists (select from requests r where r.server_uuid = any (v.server_uuids) and r.state = 'accepted')
          order by v.created_at limit $2 for update skip locked
        )
        returning id`,
      values: [olderMs, limit],
    });
    return rows.length;
  }
}

function recordOf(row: ReservationRow): ReservationRecord {
  return {
    id: row.id,
    serverUuids: row.server_uuids,
    minCount: row.min_count,
    decision: row.decision,
    fault: row.fault,
  };
}
