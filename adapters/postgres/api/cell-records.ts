import type { Pool } from "pg";
import type { CellRecord } from "../../../core/stores/api/api-store.ts";
import { createPool } from "../client/pool.ts";
import * as cells from "./cells.ts";

/** The cells of an API database, sorted by name, for commands that need nothing else from it. Throws `StoreError`. */
export function readCellRecords(apiUrl: string): Promise<readonly CellRecord[]> {
  return withPool(apiUrl, cells.readCells);
}

/** Adds the cell, or changes its URLs. Throws `StoreError`. */
export function putCellRecord(apiUrl: string, cell: CellRecord): Promise<void> {
  return withPool(apiUrl, (pool) => cells.putCell(pool, cell));
}

async function withPool<Result>(url: string, work: (pool: Pool) => Promise<Result>): Promise<Result> {
  const pool = createPool({ url, applicationName: "berth admin", connectionsMax: 1 });
  try {
    return await work(pool);
  } finally {
    await pool.end();
  }
}
