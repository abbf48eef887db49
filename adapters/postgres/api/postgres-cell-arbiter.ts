import { randomUUID } from "node:crypto";
import type { Pool } from "pg";
import type { CellArbiter, CellClaim, ClaimedName } from "../../../core/stores/api/cell-arbiter.ts";
import { textArrayLiteral } from "../client/literals.ts";
import { queryStored } from "../client/store-query.ts";

/** How long a claim is valid, by the database's clock. */
const CLAIM_MS = 90_000;
/**
 * How long after its claim a write may begin, by this process's clock. The rest of the claim is for the write: its wait for a connection (5
 * s), its statements and Postgres's deadline for them (35 s), and a wide margin.
 */
const WRITE_WITHIN_MS = 20_000;
const PURGE_EVERY_MS = 60_000;
const PURGE_MAX = 10_000;

interface ClaimRow {
  readonly cell: string;
}

/** Claims of names, stored in the API database. */
export class PostgresCellArbiter implements CellArbiter {
  readonly #pool: Pool;
  readonly #claimMs: number;
  readonly #now: () => number;
  #purgedAtMs = Number.NEGATIVE_INFINITY;

  /** The caller keeps the pool and ends it. `claimMs` and `now` (a monotonic clock) are for tests. */
  constructor(pool: Pool, options: { readonly claimMs?: number; readonly now?: () => number } = {}) {
    this.#pool = pool;
    this.#claimMs = options.claimMs ?? CLAIM_MS;
    this.#now = options.now ?? (() => performance.now());
  }

  /** Cost: one round trip. Rows are locked in the order of their names. */
  async claim(names: readonly ClaimedName[], cell: string): Promise<CellClaim> {
    const claimedAtMs = this.#now();
    const token = randomUUID();
    const unique = [...new Map(names.map((name) => [`${name.kind} ${name.key}`, name])).values()];
    // Nothing is claimed when one of the names belongs to another cell. Otherwise the other names of a refused claim would stay claimed for
    // the wrong cell. The last select reads rows that the statement left alone, as they were before it, so it does not see a row that was
    // inserted meanwhile.
    const rows = await queryStored<ClaimRow>(this.#pool, {
      name: "claim_cell",
      text: `with wanted as (
          select * from unnest($1::text[], $2::text[]) as w (kind, key)
        ), foreign_claims as (
          select c.kind, c.key, c.cell from wanted w join cell_claims c using (kind, key)
          where c.cell <> $3 and c.claimed_at >= now() - $5::float8 * interval '1 ms'
        ), claimed as (
          insert into cell_claims as c (kind, key, cell, token)
          select w.kind, w.key, $3, $4 from wanted w where not exists (select from foreign_claims) order by w.kind, w.key
          on conflict (kind, key) do update set cell = excluded.cell, token = excluded.token, claimed_at = now()
            where c.cell = excluded.cell or c.claimed_at < now() - $5::float8 * interval '1 ms'
          returning c.kind, c.key
        )
        select coalesce(f.cell, $3) as cell from wanted w left join foreign_claims f using (kind, key)
        where not exists (select from claimed d where d.kind = w.kind and d.key = w.key)
        order by f.cell is null, w.kind, w.key`,
      values: [
        textArrayLiteral(unique.map(({ kind }) => kind)),
        textArrayLiteral(unique.map(({ key }) => key)),
        cell,
        token,
        this.#claimMs,
      ],
    });
    await this.#purge();
    const [refusal] = rows;
    if (refusal !== undefined) return { kind: "refused", cell: refusal.cell };
    return { kind: "claimed", token, mayWrite: () => this.#now() - claimedAtMs < WRITE_WITHIN_MS };
  }

  async release(names: readonly ClaimedName[], token: string): Promise<void> {
    await queryStored(this.#pool, {
      name: "release_cell",
      text: `delete from cell_claims c using unnest($1::text[], $2::text[]) as w (kind, key)
        where c.kind = w.kind and c.key = w.key and c.token = $3`,
      values: [textArrayLiteral(names.map(({ kind }) => kind)), textArrayLiteral(names.map(({ key }) => key)), token],
    });
  }

  /** Deletes expired claims, unless this process has done so a short time ago. */
  async #purge(): Promise<void> {
    const nowMs = this.#now();
    if (nowMs - this.#purgedAtMs < PURGE_EVERY_MS) return;
    this.#purgedAtMs = nowMs;
    await queryStored(this.#pool, {
      name: "purge_cell_claims",
      text: `delete from cell_claims where (kind, key) in (
          select kind, key from cell_claims where claimed_at < now() - 2 * $1::float8 * interval '1 ms'
          limit ${PURGE_MAX} for update skip locked
        )`,
      values: [this.#claimMs],
    });
  }
}
