import type { Pool } from "pg";
import type { ConsoleToken, ConsoleTokenStore } from "../../../core/stores/api/console-token-store.ts";
import { queryStored, selectMs } from "../client/store-query.ts";

interface TokenRow {
  readonly token_sha256: string;
  readonly server_uuid: string;
  readonly console_type: ConsoleToken["consoleType"];
  readonly host: string;
  readonly port: number;
  readonly session: string;
  readonly expires_at_ms: number;
}

const COLUMNS = `token_sha256, server_uuid, console_type, host, port, session, ${selectMs("expires_at")}`;
const IS_VALID = "token_sha256 = $1 and expires_at > to_timestamp($2::float8 / 1000)";

/** Console tokens in the API database. Each call is one statement. Throws `StoreError`. */
export class PostgresConsoleTokenStore implements ConsoleTokenStore {
  readonly #pool: Pool;

  /** The caller keeps the pool and ends it. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async putToken(token: ConsoleToken, nowMs: number): Promise<void> {
    const { tokenSha256, serverUuid, consoleType, host, port, session, expiresAtMs } = token;
    await queryStored(this.#pool, {
      name: "put_console_token",
      text: `with expired as (
          delete from console_tokens where token_sha256 in (
            select token_sha256 from console_tokens where expires_at <= to_timestamp($8::float8 / 1000)
            order by expires_at limit 100 for update skip locked))
        insert into console_tokens (token_sha256, server_uuid, console_type, host, port, session, expires_at)
        values ($1, $2, $3, $4, $5, $6, to_timestamp($7::float8 / 1000))`,
      values: [tokenSha256, serverUuid, consoleType, host, port, session, expiresAtMs, nowMs],
    });
  }

  async token(tokenSha256: string, nowMs: number): Promise<ConsoleToken | null> {
    const [row] = await queryStored<TokenRow>(this.#pool, {
      name: "console_token",
      text: `select ${COLUMNS} from console_tokens where ${IS_VALID}`,
      values: [tokenSha256, nowMs],
    });
    return row === undefined ? null : tokenOf(row);
  }

  async takeToken(tokenSha256: string, nowMs: number): Promise<ConsoleToken | null> {
    const [row] = await queryStored<TokenRow>(this.#pool, {
      name: "take_console_token",
      text: `delete from console_tokens where ${IS_VALID} returning ${COLUMNS}`,
      values: [tokenSha256, nowMs],
    });
    return row === undefined ? null : tokenOf(row);
  }
}

function tokenOf(row: TokenRow): ConsoleToken {
  return {
    tokenSha256: row.token_sha256,
    serverUuid: row.server_uuid,
    consoleType: row.console_type,
    host: row.host,
    port: row.port,
    session: row.session,
    expiresAtMs: row.expires_at_ms,
  };
}
