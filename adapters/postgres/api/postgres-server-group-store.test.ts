import type { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { reservationStoreContract } from "../../../test/contract/reservation-store.contract.ts";
import { serverGroupStoreContract } from "../../../test/contract/server-group-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { emptyTables } from "../../../test/rigs/empty-tables.ts";
import { createPool } from "../client/pool.ts";
import { PostgresApiStore } from "./postgres-api-store.ts";
import { PostgresReservationStore } from "./postgres-reservation-store.ts";
import { PostgresServerGroupStore } from "./postgres-server-group-store.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("api");
  pool = createPool({ url: database.url, applicationName: "server group store test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

serverGroupStoreContract("Postgres", async () => {
  await emptyTables(pool, ["server_groups", "server_group_members", "open_requests", "requests"]);
  return {
    store: new PostgresServerGroupStore(pool),
    requests: new PostgresApiStore(pool),
    close: async () => undefined,
  };
});

reservationStoreContract("Postgres", async () => {
  await emptyTables(pool, ["reservations", "open_requests", "requests"]);
  const requests = new PostgresApiStore(pool);
  return { store: new PostgresReservationStore(pool), requests, close: async () => undefined };
});
