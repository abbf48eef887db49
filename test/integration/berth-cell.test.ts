import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { withClient } from "../../adapters/postgres/databases.ts";
import { freshDatabase, type TestDatabase } from "../databases.ts";

const launcher = join(import.meta.dirname, "../../bin/berth");

let api: TestDatabase;
let cell: TestDatabase;
let elsewhere: string;
beforeAll(async () => {
  [api, cell] = await Promise.all([freshDatabase("api"), freshDatabase("cell")]);
  elsewhere = mkdtempSync(join(tmpdir(), "berth-cli-"));
});
afterAll(async () => {
  rmSync(elsewhere, { recursive: true });
  await Promise.all([api.drop(), cell.drop()]);
});

async function berth(args: readonly string[], program = launcher): Promise<{ code: number; out: string; err: string }> {
  try {
    const { stdout, stderr } = await promisify(execFile)(program, args, { cwd: elsewhere });
    return { code: 0, out: stdout, err: stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, out: stdout, err: stderr };
  }
}

test("adds a cell, changes it, lists it without its password, from any directory and through a symlink", async () => {
  const link = join(elsewhere, "berth");
  symlinkSync(launcher, link);
  const where = ["--database-url", api.url, "--cell-database-url", cell.url];
  expect(await berth(["cell", "add", "c1", ...where])).toEqual({ code: 0, out: "cell c1 is ready\n", err: "" });
  expect((await berth(["cell", "add", "c1", "--disabled", ...where], link)).code).toBe(0);
  const { out } = await berth(["cell", "list", "--database-url", api.url], link);
  expect(out).toMatch(/^c1\tpostgres:\/\/berth:\[redacted\]@\S+\t-\tdisabled\n$/);
  expect((await berth(["db", "migrate", "--database-url", api.url])).out).toBe(
    "API database: up to date\ncell c1: up to date\n",
  );
});

test("a command that only reads leaves the tables of a running older cloud alone, says what to do, and ends with 2", async () => {
  const older = await freshDatabase("api");
  try {
    await withClient(older.url, (client) => client.query("delete from schema_migrations where name = '0002-arrived'"));
    for (const command of [["audit"], ["cell", "list"]]) {
      const result = await berth([...command, "--database-url", older.url]);
      expect(result).toMatchObject({
        code: 2,
        out: "",
        err: expect.stringMatching(/lacks 0002-arrived: run `berth db migrate`/),
      });
    }
    const { rows } = await withClient(older.url, (client) => client.query("select name from schema_migrations"));
    expect(rows).not.toContainEqual({ name: "0002-arrived" });
  } finally {
    await older.drop();
  }
});

test("services do not start on a database that lacks migrations", async () => {
  const older = await freshDatabase("api");
  try {
    await withClient(older.url, (client) => client.query("delete from schema_migrations where name = '0002-arrived'"));
    // Nobody listens there: they must not come so far.
    const where = [
      "--database-url",
      older.url,
      "--nats-url",
      "nats://127.0.0.1:1",
      "--redis-url",
      "redis://127.0.0.1:1",
    ];
    const services = ["api", "scheduler"];
    const ends = await Promise.all(services.map((service) => berth([service, ...where])));
    const lacking = { code: 1, err: expect.stringContaining("lacks 0002-arrived; run `berth db migrate`") };
    expect(ends).toMatchObject(services.map(() => lacking));
  } finally {
    await older.drop();
  }
});

test("refuses a cell whose database is the API tier's, and does not add it", async () => {
  const result = await berth(["cell", "add", "c2", "--database-url", api.url, "--cell-database-url", api.url]);
  expect(result).toMatchObject({ code: 1, err: "berth: this is a database of kind api, not cell\n" });
  const { out } = await berth(["cell", "list", "--database-url", api.url]);
  expect(out.split("\n").map((line) => line.split("\t")[0])).not.toContain("c2");
});

test("ends with 2 and one line for what it was called with wrongly", async () => {
  const badName = await berth(["cell", "add", "C 1", "--database-url", api.url]);
  expect(badName).toMatchObject({
    code: 2,
    err: expect.stringMatching(/^berth cell add: NAME is bad: "C 1"; allowed: .*\n$/),
  });
  const noUrl = await berth(["cell", "add", "c1", "--database-url", api.url]);
  expect(noUrl).toMatchObject({
    code: 2,
    err: expect.stringContaining("BERTH_CELL_DATABASE_URL (--cell-database-url) is missing"),
  });
  expect(await berth(["fly"])).toMatchObject({ code: 2, err: expect.stringContaining('unknown command "fly"') });
});
