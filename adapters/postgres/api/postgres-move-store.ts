import type { Pool } from "pg";
import type {
  AcceptMoveOutcome,
  MoveEnd,
  MoveRecord,
  MoveState,
  MoveStore,
  MoveSweepQuery,
} from "../../../core/stores/api/move-store.ts";
import { MoveRequest } from "../../../proto/gen/berth/scheduler.ts";
import { encodeMessage } from "../../../runtime/encode-message.ts";
import { arrayLiteral, textArrayLiteral } from "../client/literals.ts";
import { onlyUuids, queryStored, selectMs } from "../client/store-query.ts";

interface MoveRow {
  readonly request: Buffer;
  readonly state: MoveState;
  readonly fault: string | null;
  readonly updated_at_ms: number;
  readonly put_offs: number;
  readonly age_ms: number;
}

const AGE_MS = "extract(epoch from clock_timestamp() - created_at)::float8 * 1000 as age_ms";
const COLUMNS = `request, state, fault, ${selectMs("updated_at")}, put_offs, ${AGE_MS}`;

/** Requests to move servers, in the API database. Lock order: rows of `moves` by id. */
export class PostgresMoveStore implements MoveStore {
  readonly #pool: Pool;

  /** The caller keeps the pool and ends it. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** The unique index of waiting moves decides between two concurrent calls. Cost: one round trip. */
  async accept(moves: readonly MoveRequest[]): Promise<readonly AcceptMoveOutcome[]> {
    const rows = await queryStored<{ id: string; running: string | null }>(this.#pool, {
      name: "accept_moves",
      text: `with asked as (
          select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[]) with ordinality
            as a (id, server_uuid, kind, request, cell, at)
        ), added as (
          insert into moves (id, server_uuid, kind, request, cell)
          select id, server_uuid, kind, decode(request, 'base64'), cell from asked order by at
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
        textArrayLiteral(moves.map((move) => Buffer.from(encodeMessage(MoveRequest, move)).toString("base64"))),
        textArrayLiteral(moves.map(({ cell }) => cell)),
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
          join (select id, state from moves where id = any ($1) order by id for no key update) m on m.id = e.id
          where m.state = 'accepted' or (m.state = 'refused' and e.state = 'begun')
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

  async markAsked(ids: readonly string[]): Promise<readonly string[]> {
    const rows = await queryStored<{ id: string }>(this.#pool, {
      name: "mark_moves_asked",
      text: `update moves set asked_at = coalesce(asked_at, clock_timestamp())
        where id in (select id from moves where id = any ($1) and state = 'accepted' order by id for no key update)
        returning id`,
      values: [textArrayLiteral(onlyUuids(ids))],
    });
    return rows.map(({ id }) => id);
  }

  async giveUp(moves: readonly { readonly id: string; readonly fault: string }[]): Promise<readonly string[]> {
    const rows = await queryStored<{ id: string }>(this.#pool, {
      name: "give_up_moves",
      text: `with waiting as (
          select id from moves where id = any ($1) and state = 'accepted' and asked_at is null order by id for no key update
        )
        update moves m set state = 'refused', fault = g.fault, updated_at = clock_timestamp()
        from unnest($1::uuid[], $2::text[]) as g (id, fault) join waiting w on w.id = g.id
        where m.id = g.id returning m.id`,
      values: [textArrayLiteral(moves.map(({ id }) => id)), textArrayLiteral(moves.map(({ fault }) => fault))],
    });
    return rows.map(({ id }) => id);
  }

  async putOff(putOffs: readonly { readonly id: string; readonly delayMs: number }[]): Promise<void> {
    const delays = new Map(putOffs.map(({ id, delayMs }) => [id, delayMs]));
    await queryStored(this.#pool, {
      name: "put_off_moves",
      text: `with waiting as (select id from moves where id = any ($1) and state = 'accepted' order by id for no key update)
        update moves m set retry_at = clock_timestamp() + p.delay_ms * interval '1 ms', put_offs = m.put_offs + 1
        from unnest($1::uuid[], $2::float8[]) as p (id, delay_ms) join waiting w on w.id = p.id
        where m.id = p.id`,
      values: [textArrayLiteral([...delays.keys()]), arrayLiteral([...delays.values()])],
    });
  }

  async staleMoves(
    untouchedMs: number,
    limit: number,
    { exceptCells, unlessOlderThanMs }: MoveSweepQuery = { exceptCells: [], unlessOlderThanMs: 0 },
  ): Promise<readonly string[]> {
    const rows = await queryStored<{ id: string; touched_at: number }>(this.#pool, {
      name: "sweep_moves",
      text: `with found as (
          select id, updated_at as touched_at from moves
          where state = 'accepted' and coalesce(retry_at, updated_at + $1::float8 * interval '1 ms') <= clock_timestamp()
            and (cell is null or cell <> all ($3::text[])
              or asked_at is null and created_at <= clock_timestamp() - $4::float8 * interval '1 ms')
          order by updated_at limit $2 for no key update skip locked
        )
        update moves m set updated_at = clock_timestamp(), retry_at = clock_timestamp() + $1::float8 * interval '1 ms'
        from found where m.id = found.id
        returning m.id, extract(epoch from found.touched_at)::float8 as touched_at`,
      values: [untouchedMs, limit, textArrayLiteral(exceptCells), unlessOlderThanMs],
    });
    return [...rows].sort((some, other) => some.touched_at - other.touched_at).map(({ id }) => id);
  }
}

function recordOf(row: MoveRow): MoveRecord {
  return {
    request: MoveRequest.decode(row.request),
    state: row.state,
    fault: row.fault,
    updatedAtMs: row.updated_at_ms,
    putOffs: row.put_offs,
    ageMs: Math.max(0, row.age_ms),
  };
}
