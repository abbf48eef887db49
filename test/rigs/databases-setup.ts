import type { TestProject } from "vitest/node";
import { ensureDatabase, withClient } from "../../adapters/postgres/client/databases.ts";
import { startEmbedded } from "../../adapters/postgres/embedded/embedded.ts";
import { migrate } from "../../adapters/postgres/schema/migrate.ts";
import type { DatabaseKind } from "../../adapters/postgres/schema/schema-files.ts";
import { connectedInTime } from "./connected-in-time.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** URL of the database `postgres` on the server that this test run shares. */
    postgresUrl: string;
  }
}

export const templateOf = (kind: DatabaseKind): string => `template_${kind}`;

/**
 * URL of the database `postgres` on a server of another version to test on. Its user must be allowed to create databases. By default the
 * embedded server is used.
 */
const GIVEN_URL = process.env.BERTH_TEST_POSTGRES_URL;

/** Every worker has the connections of a whole cloud, and of some stores beside it. */
const SETTINGS = { max_connections: "400" };

type Server = Pick<Awaited<ReturnType<typeof startEmbedded>>, "url" | "stop">;

function givenServer(adminUrl: string): Server {
  return {
    url: (database) => Object.assign(new URL(adminUrl), { pathname: `/${database}` }).href,
    stop: async () => undefined,
  };
}

/**
 * One embedded server for the whole run, with a migrated template for each kind of database. At the end every database of a test must have
 * been dropped. A remaining one means that a test forgot to clean up, and fails the run.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server =
    GIVEN_URL === undefined ? await startEmbedded({ durable: false, settings: SETTINGS }) : givenServer(GIVEN_URL);
  try {
    for (const kind of ["cell", "api"] as const) {
      await connectedInTime(() => ensureDatabase(server.url("postgres"), templateOf(kind)));
      await connectedInTime(() => migrate(server.url(templateOf(kind)), kind));
    }
  } catch (error) {
    await server.stop();
    throw error;
  }
  project.provide("postgresUrl", server.url("postgres"));
  return async () => {
    const query = "select datname from pg_database where datname like 'test\\_%' order by 1";
    const left = await connectedInTime(() =>
      withClient(server.url("postgres"), (client) => client.query<{ datname: string }>(query)),
    );
    await server.stop();
    if (left.rows.length > 0)
      throw new Error(`databases not dropped by their tests: ${left.rows.map((row) => row.datname).join(", ")}`);
  };
}
