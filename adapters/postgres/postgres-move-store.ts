import type { Pool } from "pg";
import type { AcceptMoveOutcome, MoveEnd, MoveRecord, MoveState, MoveStore } from "../../core/cell/move-store.ts";
import { MoveRequest } from "../../proto/gen/berth/scheduler.ts";
import { textArrayLiteral } from "./literals.ts";
import { onlyUuids, queryStored, selectMs } from "./store-query.ts";

interface MoveRow {
  readonly request: Buffer;
  readonly state: MoveState;
  readonly fault: string | null;
  readonly updated_at_ms: number;
}

const COLUMNS = `request, state, fault, ${selectMs("updated_at")}`;

/** Requests to move servers, in the API database. Lock order: rows of `moves` by id. */
export class PostgresMoveStore implements MoveStore {
  readonly #pool: Pool;

  /** The pool stays the caller's. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** The index of waiting moves decides between two at once. Cost: one round trip. */
  async accept(moves: readonly MoveRequest[]): Promise<readonly AcceptMoveOutcome[]> {
    const rows = await queryStored<{ id: string; running: string | null }>(this.#pool, {
      name: "accept_moves",
      text: `with asked as (
          select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[]) with ordinality
            as a (id, server_uuid, kind, request, at)
        ), added as (
          insert into moves (id, server_uuid, kind, request)
          select id, server_uuid, kind, decode(request, 'base64') from asked order by at
          on conflict do nothing returning id
        )
        select a.id, case when n.id is null and k.id is null then coalesce(w.kind, a.kind) end as running
        from asked a left join added n on n.id = a.id left join moves k on k.id = a.id
        left join moves w on w.server_uuid = a.server_uuid and w.state = 'accepted'
        order by a.at`,
      values: [
        textArrayLiteral(moves.map(({ id }) => id)),
        textArrayLiteral(moves.map(({ serverUuid }) => serverUuid)),
        textArrayLiteral(moves.map(({ kind }) => kind)),
        textArrayLiteral(moves.map((move) => Buffer.from(MoveRequest.encode(move).finish()).toString("base64"))),
      ],
    });
    return rows.map(({ running }) => (running === null ? { kind: "accepted" } : { kind: "busy", running }));
  }

  async moves(ids: readonly string[]): Promise<readonly MoveRecord[]> {
    const rows = await queryStored<MoveRow>(this.#pool, {
      name: "moves",
      text: `select ${COLUMNS} from moves where id = any ($1)`,
      values: [textArrayLiteral(onlyUuids(ids))],
    });
    const byId = new Map(rows.map(recordOf).map((record) => [record.request.id, record]));
    return ids.map((id) => byId.get(id)).filter((record) => record !== undefined);
  }

  async waiting(serverUuids: readonly string[]): Promise<readonly MoveRecord[]> {
    const rows = await queryStored<MoveRow>(this.#pool, {
      name: "waiting_moves",
      text: `select ${COLUMNS} from moves where server_uuid = any ($1) and state = 'accepted'`,
      values: [textArrayLiteral(onlyUuids(serverUuids))],
    });
    return rows.map(recordOf);
  }

  async movesOf(serverUuid: string, limit: number): Promise<readonly MoveRecord[]> {
    const rows = await queryStored<MoveRow>(this.#pool, {
      name: "moves_of",
      text: `select ${COLUMNS} from moves where server_uuid = any ($1) order by created_at desc, id limit $2`,
      values: [textArrayLiteral(onlyUuids([serverUuid])), limit],
    });
    return rows.map(recordOf);
  }

  async end(ends: readonly MoveEnd[]): Promise<void> {
    await queryStored(this.#pool, {
      name: "end_moves",
      text: `with ends as (
          select e.* from unnest($1::uuid[], $2::text[], $3::text[]) as e (id, state, fault)
          join (select id from moves where id = any ($1) and state = 'accepted' order by id for no key update) m on m.id = e.id
        )
        update moves m set state = e.state, fault = nullif(e.fault, ''), updated_at = clock_timestamp()
        from ends e where m.id = e.id`,
      values: [
        textArrayLiteral(ends.map(({ id }) => id)),
        textArrayLiteral(ends.map(({ state }) => state)),
        textArrayLiteral(ends.map(({ fault }) => fault ?? "")),
      ],
    });
  }

  async staleMoves(untouchedMs: number, limit: number): Promise<readonly MoveRecord[]> {
    const rows = await queryStored<MoveRow>(this.#pool, {
      name: "stale_moves",
      text: `update moves set updated_at = clock_timestamp()
        where id in (
          select id from moves where state = 'accepted' and updated_at <= clock_timestamp() - $1::float8 * interval '1 ms'
          order by updated_at limit $2 for no key update skip locked
        )
        returning ${COLUMNS}`,
      values: [untouchedMs, limit],
    });
    return rows.map(recordOf);
  }
}

function recordOf(row: MoveRow): MoveRecord {
  return {
    request: MoveRequest.decode(row.request),
    state: row.state,
    fault: row.fault,
    updatedAtMs: row.updated_at_ms,
  };
}
