import { existsSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { expect, inject, test } from "vitest";
import { dropDatabase, ensureDatabase, withClient } from "../../adapters/postgres/client/databases.ts";
import { startCloud } from "../../cloud/embedded-cloud.ts";
import { createLogger } from "../../runtime/logger.ts";
import { freshDatabase } from "../rigs/databases.ts";

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

test.each([
  { underLoad: false, servers: 1 },
  { underLoad: true, servers: 3 },
])(
  "a cloud without a data directory keeps its databases in temporary files, and removes them at its end: $servers servers",
  async ({ underLoad, servers }) => {
    const cloud = await startCloud({ ...TEMPORARY, cells: CELLS, underLoad, logger: QUIET, fail });
    const directories = new Set<string>();
    try {
      for (const url of [cloud.databaseUrl, ...cloud.cells.map((cell) => cell.databaseUrl)])
        directories.add(await dataDirectoryOf(url));
      for (const each of directories) expect(realpathSync(each).startsWith(`${realpathSync(tmpdir())}/`)).toBe(true);
      expect(directories.size).toBe(servers);
    } finally {
      await cloud.close();
    }
    expect([...directories].filter((each) => existsSync(each))).toEqual([]);
  },
  120_000,
);

test("a cell whose database cannot be prepared is the reported reason why the cloud does not start; the other cells finish their preparation", async () => {
  const api = await freshDatabase("api");
  const urlOf = (cell: string) => `${api.url}_cell_${cell}`;
  const admin = inject("postgresUrl");
  const name = (cell: string) => new URL(urlOf(cell)).pathname.slice(1);
  try {
    await ensureDatabase(admin, name("c1"));
    await withClient(urlOf("c1"), (client) => client.query("create table tasks (id int)"));
    const start = startCloud({ ...TEMPORARY, databaseUrl: api.url, cells: CELLS, logger: QUIET, fail });
    await expect(start).rejects.toThrow(/migration .* failed/);
    const { rowCount } = await withClient(urlOf("c2"), (client) => client.query("select from tasks"));
    expect(rowCount).toBe(0);
  } finally {
    for (const { name: cell } of CELLS) await dropDatabase(admin, name(cell));
    await api.drop();
  }
});
