import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { inject } from "vitest";
import { cloneDatabase, dropDatabase, withClient } from "../../adapters/postgres/client/databases.ts";
import type { DatabaseKind } from "../../adapters/postgres/schema/schema-files.ts";
import { connectedInTime } from "./connected-in-time.ts";
import { templateOf } from "./databases-setup.ts";

export interface TestDatabase {
  readonly url: string;
  /** Removes the database. Throws when a connection to it is still open. */
  drop(): Promise<void>;
}

// A closed connection takes a moment to leave pg_stat_activity, and longer on a busy machine.
const SESSIONS_END_MS = 60_000;

/** A migrated, empty database of its own for a test file. Call it in `beforeAll` and `drop` it in `afterAll`. Cost: some 30 ms. */
export async function freshDatabase(kind: DatabaseKind): Promise<TestDatabase> {
  const adminUrl = inject("postgresUrl");
  const name = `test_${kind}_${randomBytes(6).toString("hex")}`;
  await connectedInTime(() => cloneDatabase(adminUrl, templateOf(kind), name));
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    drop: async () => {
      const open = await connectedInTime(() => waitUntilNoSessions(adminUrl, name));
      await connectedInTime(() => dropDatabase(adminUrl, name));
      if (open.length > 0) throw new Error(`connections left open to ${name}: ${open.join("; ")}`);
    },
  };
}

/** A migrated, empty database for a cell of the cloud whose API database this is, named as the cloud names it. The caller drops it. */
export async function freshCellBeside(api: TestDatabase, cell: string): Promise<void> {
  const name = `${new URL(api.url).pathname.slice(1)}_cell_${cell}`;
  await connectedInTime(() => cloneDatabase(inject("postgresUrl"), templateOf("cell"), name));
}

/** The sessions that are still open after a while, each as `application: last query`. */
async function waitUntilNoSessions(adminUrl: string, database: string): Promise<readonly string[]> {
  const deadline = performance.now() + SESSIONS_END_MS;
  return withClient(adminUrl, async (client) => {
    for (;;) {
      const { rows } = await client.query<{ session: string }>(
        `select application_name || ': ' || left(query, 100) as session
         from pg_stat_activity where datname = $1 and backend_type in ('client backend', 'walsender')`,
        [database],
      );
      if (rows.length === 0 || performance.now() > deadline) return rows.map((row) => row.session);
      await delay(20);
    }
  });
}
