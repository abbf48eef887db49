import { existsSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { withClient } from "../../adapters/postgres/databases.ts";
import { startCloud } from "../../cli/embedded/embedded-cloud.ts";
import { createLogger } from "../../runtime/logger.ts";

test("a cloud without a data directory keeps its databases among the temporary files, and takes them with it", async () => {
  const cloud = await startCloud({
    ...{ databaseUrl: null, dataDir: null, schedulers: 1, conductors: 1, listen: { host: "127.0.0.1", port: 0 } },
    cells: [{ name: "c1", hosts: [{ name: "h1", inventories: { VCPU: { total: 1 } } }] }],
    logger: createLogger({ name: "test", level: "silent" }),
    fail: (error) => {
      throw error;
    },
  });
  let data = "";
  try {
    data = await withClient(cloud.databaseUrl, async (client) => {
      const { rows } = await client.query<{ data_directory: string }>("show data_directory");
      return rows[0]!.data_directory;
    });
    expect(realpathSync(data).startsWith(`${realpathSync(tmpdir())}/`)).toBe(true);
  } finally {
    await cloud.close();
  }
  expect(existsSync(data)).toBe(false);
}, 60_000);
