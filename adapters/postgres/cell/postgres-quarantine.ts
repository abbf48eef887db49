import type { Pool } from "pg";
import type { QuarantineAdmin, QuarantinedGuest } from "../../../core/stores/cell/quarantine.ts";
import { condemnGuests, readQuarantined, renewIncarnation } from "./quarantine.ts";

/** The operators' part of a cell's quarantine, in the cell's database. Throws `StoreError`. */
export class PostgresQuarantine implements QuarantineAdmin {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  quarantined(): Promise<readonly QuarantinedGuest[]> {
    return readQuarantined(this.#pool);
  }

  condemn(serverUuids: readonly string[] | null): Promise<number> {
    return condemnGuests(this.#pool, serverUuids);
  }

  renewIncarnation(): Promise<string> {
    return renewIncarnation(this.#pool);
  }
}
