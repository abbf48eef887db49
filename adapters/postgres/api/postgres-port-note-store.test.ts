import type { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { portNoteStoreContract } from "../../../test/contract/port-note-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { createPool } from "../client/pool.ts";
import { PostgresApiStore } from "./postgres-api-store.ts";
import { PostgresPortNoteStore } from "./postgres-port-note-store.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("api");
  pool = createPool({ url: database.url, applicationName: "port note store test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

portNoteStoreContract("Postgres", async () => {
  await pool.query("truncate port_notes, requests");
  return { store: new PostgresPortNoteStore(pool), requests: new PostgresApiStore(pool) };
});
