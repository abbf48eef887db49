import type { Pool } from "pg";
import type { LedgerFollower } from "../../../adapters/postgres/follower/ledger-follower.ts";
import { PostgresLedger } from "../../../adapters/postgres/ledger/postgres-ledger.ts";
import { createPlacementStore } from "../../../adapters/postgres/placement/postgres-placement-store.ts";
import type { LedgerView } from "../../../core/ledger/ledger-view.ts";
import type { PlacementCell } from "./service.ts";

/** A cell of a Postgres database as the Placement API sees it; pool, view and follower stay the caller's. */
export function placementCell(name: string, pool: Pool, view: LedgerView, follower: LedgerFollower): PlacementCell {
  return { name, store: createPlacementStore(pool, new PostgresLedger(pool)), view, source: follower };
}
