import { expect, inject, test, vi } from "vitest";
import { createPool } from "./pool.ts";
import { PrimaryClient } from "./primary-client.ts";

const settingsOf = async (url: string): Promise<unknown> => {
  const pool = createPool({ url, applicationName: "options", connectionsMax: 1, findsByKeys: true });
  try {
    const { rows } = await pool.query(
      "select current_setting('enable_seqscan') as seqscan, current_setting('work_mem') as work_mem",
    );
    return rows[0];
  } finally {
    await pool.end();
  }
};

test("a pool's own settings are added to those of the environment", async () => {
  vi.stubEnv("PGOPTIONS", "-c work_mem=7MB");
  try {
    expect(await settingsOf(inject("postgresUrl"))).toEqual({ seqscan: "off", work_mem: "7MB" });
  } finally {
    vi.unstubAllEnvs();
  }
});

test("a pool's own settings are added to those of the URL", async () => {
  const url = new URL(inject("postgresUrl"));
  url.searchParams.set("options", "-c work_mem=9MB");
  expect(await settingsOf(url.href)).toEqual({ seqscan: "off", work_mem: "9MB" });
});

test("without settings in the environment or the URL, a client has the settings that it is given", () => {
  const client = new PrimaryClient({ connectionString: "postgres://u@one/db", addedOptions: "-c jit=off" });
  expect((client as unknown as { connectionParameters: object }).connectionParameters).toMatchObject({
    options: "-c jit=off",
  });
});
