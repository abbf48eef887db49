import type { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { ownSecurityGroupsContract } from "../../../test/contract/own-security-groups.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { createPool } from "../client/pool.ts";
import { PostgresPortStore } from "./postgres-port-store.ts";
import { PostgresSecurityGroups } from "./postgres-security-groups.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("api");
  pool = createPool({ url: database.url, applicationName: "security groups test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

ownSecurityGroupsContract("Postgres", async () => ({
  ports: new PostgresPortStore(pool),
  groups: new PostgresSecurityGroups(pool),
}));
