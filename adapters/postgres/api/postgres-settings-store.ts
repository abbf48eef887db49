import type { Pool } from "pg";
import type { SettingsStore, StoredSettings, WriteSettingsOutcome } from "../../../core/stores/api/settings-store.ts";
import { queryStored } from "../client/store-query.ts";

/** Settings in the API database. Each write is one compare-and-set statement. Throws `StoreError`. */
export class PostgresSettingsStore implements SettingsStore {
  readonly #pool: Pool;

  /** The caller keeps the pool and ends it. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async read(section: string): Promise<StoredSettings> {
    const [row] = await queryStored<{ version: number; values: Record<string, unknown> }>(this.#pool, {
      name: "settings",
      text: `select version, "values" from settings where section = $1`,
      values: [section],
    });
    return row === undefined ? { version: 0, values: {} } : { version: row.version, values: row.values };
  }

  async write(
    section: string,
    expected: number,
    values: Readonly<Record<string, unknown>>,
  ): Promise<WriteSettingsOutcome> {
    const [row] = await queryStored<{ version: number }>(this.#pool, {
      name: expected === 0 ? "insert_settings" : "update_settings",
      text:
        expected === 0
          ? `insert into settings (section, version, "values") values ($1, $2::bigint + 1, $3)
            on conflict (section) do nothing returning version`
          : `update settings set version = version + 1, "values" = $3, updated_at = now()
            where section = $1 and version = $2 returning version`,
      values: [section, expected, JSON.stringify(values)],
    });
    if (row !== undefined) return { kind: "written", version: row.version };
    return { kind: "conflict", version: (await this.read(section)).version };
  }
}
