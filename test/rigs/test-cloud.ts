import { dropDatabase } from "../../adapters/postgres/client/databases.ts";
import { type EmbeddedCloud, type EmbeddedCloudOptions, startCloud } from "../../cloud/embedded-cloud.ts";
import { createLogger } from "../../runtime/logger.ts";
import { freshCellBeside, freshDatabase, type TestDatabase } from "./databases.ts";

const NEWEST_MINOR = 90;

/** A whole cloud in this process, with its own databases. */
export interface TestCloud extends EmbeddedCloud {
  /** Calls the api. `minor` is the Compute microversion's. `json` is null where the answer has no body. */
  call(method: string, path: string, body?: unknown, minor?: number): ReturnType<typeof callApi>;
  /** Stops everything and drops the databases. Throws when a connection to the API database was left open. */
  close(): Promise<void>;
}

/** Call it in `beforeAll`, and `close` the cloud in `afterAll`. Nothing is left when it rejects. */
export async function startTestCloud(
  options: Pick<
    EmbeddedCloudOptions,
    | "cells"
    | "schedulers"
    | "conductors"
    | "resizeToSameHost"
    | "reclaimInstanceIntervalMs"
    | "dashboard"
    | "auth"
    | "networks"
    | "volumes"
    | "blockStorage"
    | "glance"
    | "neutron"
    | "openDriver"
    | "consoles"
  >,
): Promise<TestCloud> {
  const database = await freshDatabase("api");
  const cells = options.cells.map(({ name }) => name);
  try {
    // The cloud would make the missing databases and run all migrations on them, which takes many times as long as a copy.
    for (const cell of cells) await freshCellBeside(database, cell);
    const cloud = await startCloud({
      ...{ ...options, databaseUrl: database.url, dataDir: null },
      listen: { host: "127.0.0.1", port: 0 },
      logger: createLogger({ name: "test", level: "silent" }),
      fail: (error) => {
        throw error;
      },
    });
    return {
      ...cloud,
      call: (method, path, body, minor = NEWEST_MINOR) => callApi(`${cloud.apiUrl}${path}`, method, body, minor),
      close: async () => {
        await cloud.close();
        await dropDatabases(database, cells);
      },
    };
  } catch (error) {
    await dropDatabases(database, cells);
    throw error;
  }
}

/** The databases of the cells are on the API database's server and named after it. */
async function dropDatabases(api: TestDatabase, cells: readonly string[]): Promise<void> {
  for (const cell of cells) await dropDatabase(api.url, `${new URL(api.url).pathname.slice(1)}_cell_${cell}`);
  await api.drop();
}

async function callApi(url: string, method: string, body: unknown, minor: number) {
  const headers = { "content-type": "application/json", "openstack-api-version": `compute 2.${minor}` };
  const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
  const response = await fetch(url, { ...init, headers });
  const text = await response.text();
  return { status: response.status, json: text === "" ? null : JSON.parse(text) };
}
