import { existsSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { withClient } from "../../adapters/postgres/databases.ts";
import { startCloud } from "../../cli/embedded/embedded-cloud.ts";
import { createLogger } from "../../runtime/logger.ts";

const QUIET = createLogger({ name: "test", level: "silent" });
const TEMPORARY = {
  databaseUrl: null,
  dataDir: null,
  schedulers: 1,
  conductors: 1,
  listen: { host: "127.0.0.1", port: 0 },
};
const CELLS = ["c1", "c2"].map((name) => ({
  name,
  hosts: [{ name: `${name}-h1`, inventories: { VCPU: { total: 1 } } }],
}));

function fail(error: unknown): never {
  throw error;
}

function dataDirectoryOf(databaseUrl: string): Promise<string> {
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ data_directory: string }>("show data_directory");
    return rows[0]!.data_directory;
  });
}

test("a cloud without a data directory keeps its databases among the temporary files, and takes them with it", async () => {
  const cloud = await startCloud({ ...TEMPORARY, cells: CELLS, logger: QUIET, fail });
  const directories: string[] = [];
  try {
    for (const url of [cloud.databaseUrl, ...cloud.cells.map((cell) => cell.databaseUrl)])
      directories.push(await dataDirectoryOf(url));
    for (const each of directories) expect(realpathSync(each).startsWith(`${realpathSync(tmpdir())}/`)).toBe(true);
    // A cell's view reads the whole log of its server.
    expect(new Set(directories).size).toBe(3);
  } finally {
    await cloud.close();
  }
  expect(directories.filter((each) => existsSync(each))).toEqual([]);
}, 60_000);
