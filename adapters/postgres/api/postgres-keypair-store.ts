import type { Pool } from "pg";
import type {
  KeypairQuery,
  KeypairRecord,
  KeypairStore,
  KeypairType,
  NewKeypair,
} from "../../../core/stores/api/keypair-store.ts";
import { runStored } from "../client/run-stored.ts";
import { queryRows, queryStored, selectMs } from "../client/store-query.ts";
import { inTransaction } from "../client/transaction.ts";

interface KeypairRow {
  readonly id: number;
  readonly user_id: string;
  readonly name: string;
  readonly type: KeypairType;
  readonly public_key: string;
  readonly fingerprint: string;
  readonly created_at_ms: number;
}

const SELECT_KEYPAIRS = `select id, user_id, name, type, public_key, fingerprint, ${selectMs("created_at")} from keypairs`;

/** Keypairs in the API database. */
export class PostgresKeypairStore implements KeypairStore {
  readonly #pool: Pool;

  /** The caller keeps the pool and ends it. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Users are locked by number, because a new keypair has no row yet by which the count could be kept. */
  createKeypair(keypair: NewKeypair, keypairsMax: number | null): Promise<"created" | "name-taken" | "too-many"> {
    return runStored("create_keypair", () =>
      inTransaction(this.#pool, async (client) => {
        await queryRows(client, {
          name: "lock_keypairs",
          text: "select pg_advisory_xact_lock(1801812339, hashtext($1))",
          values: [keypair.userId],
        });
        const [room] = await queryRows<{ enough: boolean }>(client, {
          name: "count_keypairs",
          text: "select $2::int is null or count(*) < $2::int as enough from keypairs where user_id = $1",
          values: [keypair.userId, keypairsMax],
        });
        if (!room?.enough) return "too-many";
        const rows = await queryRows(client, {
          name: "create_keypair",
          text: `insert into keypairs (user_id, name, type, public_key, fingerprint, created_at)
            values ($1, $2, $3, $4, $5, to_timestamp($6::float8 / 1000)) on conflict do nothing returning id`,
          values: [
            keypair.userId,
            keypair.name,
            keypair.type,
            keypair.publicKey,
            keypair.fingerprint,
            keypair.createdAtMs,
          ],
        });
        return rows.length > 0 ? "created" : "name-taken";
      }),
    );
  }

  async keypair(userId: string, name: string): Promise<KeypairRecord | null> {
    const [row] = await queryStored<KeypairRow>(this.#pool, {
      name: "keypair",
      text: `${SELECT_KEYPAIRS} where user_id = $1 and name = $2`,
      values: [userId, name],
    });
    return row === undefined ? null : recordOf(row);
  }

  async keypairs({ userId, marker, limit }: KeypairQuery): Promise<readonly KeypairRecord[] | null> {
    if (marker !== null && (await this.keypair(userId, marker)) === null) return null;
    const rows = await queryStored<KeypairRow>(this.#pool, {
      name: "keypairs",
      text: `${SELECT_KEYPAIRS} where user_id = $1 and ($2::text is null or name > $2) order by name limit $3`,
      values: [userId, marker, limit],
    });
    return rows.map(recordOf);
  }

  async deleteKeypair(userId: string, name: string): Promise<boolean> {
    const rows = await queryStored(this.#pool, {
      name: "delete_keypair",
      text: "delete from keypairs where user_id = $1 and name = $2 returning id",
      values: [userId, name],
    });
    return rows.length > 0;
  }
}

function recordOf(row: KeypairRow): KeypairRecord {
  return {
    id: row.id,
    userId: row.user_id,
    name: row.name,
    type: row.type,
    publicKey: row.public_key,
    fingerprint: row.fingerprint,
    createdAtMs: row.created_at_ms,
  };
}
