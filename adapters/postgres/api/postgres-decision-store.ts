import type { Pool } from "pg";
import type { Decision } from "../../../core/scheduling/explain/decision.ts";
import {
  DECISIONS_OF_SERVER_MAX,
  type DecisionLimits,
  type DecisionRecord,
  type DecisionStore,
} from "../../../core/stores/api/decision-store.ts";
import { queryStored } from "../client/store-query.ts";

/** The number of records that one statement deletes. It is limited so that a purge does not delay other statements. */
const PURGED_AT_ONCE = 10_000;

/**
 * jsonb accepts neither U+0000 nor half of a surrogate pair. A reason may quote text from a caller, and one such character must not fail a
 * whole batch.
 */
function storableText(_key: string, value: unknown): unknown {
  return typeof value === "string" ? value.replaceAll("\0", "").toWellFormed() : value;
}

/** Decisions in the API database. Throws `StoreError`. */
export class PostgresDecisionStore implements DecisionStore {
  readonly #pool: Pool;

  /** The caller keeps the pool and ends it. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async putDecisions(records: readonly DecisionRecord[]): Promise<void> {
    if (records.length === 0) return;
    await queryStored(this.#pool, {
      name: "put_decisions",
      text: `insert into decisions (server_uuid, request_id, scheduler, at, decision)
        select server_uuid, request_id, scheduler, to_timestamp(at_ms / 1000.0), decision::jsonb
        from unnest($1::uuid[], $2::text[], $3::text[], $4::float8[], $5::text[])
          as given (server_uuid, request_id, scheduler, at_ms, decision)`,
      values: [
        records.map((record) => record.serverUuid),
        records.map((record) => record.requestId),
        records.map((record) => record.scheduler),
        records.map((record) => record.atMs),
        records.map((record) => JSON.stringify(record.decision, storableText)),
      ],
    });
  }

  async decisionsOf(serverUuid: string): Promise<readonly DecisionRecord[]> {
    const rows = await queryStored<{ request_id: string; scheduler: string; at_ms: number; decision: Decision }>(
      this.#pool,
      {
        name: "decisions_of",
        text: `select request_id, scheduler, round(extract(epoch from at) * 1000)::float8 as at_ms, decision
          from decisions where server_uuid = $1 order by id desc limit $2`,
        values: [serverUuid, DECISIONS_OF_SERVER_MAX],
      },
    );
    return rows.map(({ request_id, scheduler, at_ms, decision }) => ({
      ...{ serverUuid, requestId: request_id, scheduler, atMs: at_ms, decision },
    }));
  }

  /** Ids rise with time and have few gaps, so the newest id bounds the number of records. */
  async purgeDecisions({ beforeMs, recordsMax }: DecisionLimits): Promise<number> {
    let purged = 0;
    for (;;) {
      const [row] = await queryStored<{ purged: number }>(this.#pool, {
        name: "purge_decisions",
        text: `with old as (
            select id from decisions
            where at < to_timestamp($1::float8 / 1000.0)
              or id <= (select coalesce(max(id), 0) from decisions) - $2::bigint
            order by id limit $3
          ), gone as (delete from decisions where id in (select id from old) returning 1)
          select count(*)::int as purged from gone`,
        values: [beforeMs, recordsMax, PURGED_AT_ONCE],
      });
      purged += row?.purged ?? 0;
      if ((row?.purged ?? 0) < PURGED_AT_ONCE) return purged;
    }
  }
}
