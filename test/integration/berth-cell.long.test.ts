import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { withClient } from "../../adapters/postgres/client/databases.ts";
import { claimCellNameAt } from "../../adapters/postgres/schema/claim-cell-name.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";

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

type Urls = Readonly<Partial<Record<"databaseUrl" | "cellDatabaseUrl" | "natsUrl" | "redisUrl", string>>>;
const VARIABLES = {
  databaseUrl: "BERTH_DATABASE_URL",
  cellDatabaseUrl: "BERTH_CELL_DATABASE_URL",
  natsUrl: "BERTH_NATS_URL",
  redisUrl: "BERTH_REDIS_URL",
} as const;

/** URLs are passed by the environment, because everybody on the machine can read the arguments of a command. */
async function berth(
  args: readonly string[],
  urls: Urls = {},
  program = launcher,
): Promise<{ code: number; out: string; err: string }> {
  const given = Object.entries(urls).map(([name, url]) => [VARIABLES[name as keyof Urls], url]);
  const env = { ...process.env, ...Object.fromEntries(given) };
  try {
    const { stdout, stderr } = await promisify(execFile)(program, args, { cwd: elsewhere, env });
    return { code: 0, out: stdout, err: stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, out: stdout, err: stderr };
  }
}

test("adds a cell, changes it, lists it without its password, from any directory and through a symlink", async () => {
  const link = join(elsewhere, "berth");
  symlinkSync(launcher, link);
  const urls = { databaseUrl: api.url, cellDatabaseUrl: cell.url };
  expect(await berth(["cell", "add", "c1"], urls)).toEqual({ code: 0, out: "cell c1 is ready\n", err: "" });
  expect((await berth(["cell", "add", "c1", "--disabled"], urls, link)).code).toBe(0);
  const { out } = await berth(["cell", "list"], urls, link);
  expect(out).toMatch(/^c1\tpostgres:\/\/berth:\[redacted\]@\S+\t-\tdisabled\n$/);
  expect((await berth(["db", "migrate"], { databaseUrl: api.url })).out).toBe(
    "API database: up to date\ncell c1: up to date\n",
  );
});

test("a command that only reads does not change the tables of a running older cloud, gives advice, and ends with 2", async () => {
  const older = await freshDatabase("api");
  try {
    await withClient(older.url, (client) =>
      client.query("delete from schema_functions where name = 'is_open_request'"),
    );
    for (const command of [["audit"], ["cell", "list"]]) {
      const result = await berth(command, { databaseUrl: older.url });
      expect(result).toMatchObject({
        code: 2,
        out: "",
        err: expect.stringMatching(/lacks functions\/is_open_request: run `berth db migrate`/),
      });
    }
    const { rows } = await withClient(older.url, (client) => client.query("select name from schema_functions"));
    expect(rows).not.toContainEqual({ name: "is_open_request" });
  } finally {
    await older.drop();
  }
});

test("a command that reads refuses a database that does not answer or is empty, and a directory without a database", async () => {
  const unreachable = await berth(["audit"], { databaseUrl: "postgres://berth:secret@127.0.0.1:1/berth_api" });
  expect(unreachable).toMatchObject({ code: 2, out: "" });
  expect(unreachable.err).toMatch(/^berth audit: BERTH_DATABASE_URL .* names 127\.0\.0\.1:1\/berth_api, which .*\n$/);
  expect(unreachable.err).not.toContain("secret");
  const empty = await freshDatabase("api");
  try {
    await withClient(empty.url, (client) => client.query("drop schema public cascade; create schema public"));
    const result = await berth(["cell", "list"], { databaseUrl: empty.url });
    expect(result).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^berth cell list: the API database is empty: /),
    });
  } finally {
    await empty.drop();
  }
  const mistyped = join(elsewhere, "mistyped");
  const result = await berth(["audit", "--data-dir", mistyped]);
  expect(result).toMatchObject({ code: 2, err: expect.stringMatching(/^berth audit: BERTH_DATA_DIR .*mistyped/) });
  expect(existsSync(mistyped)).toBe(false);
});

test("services do not start on a database that lacks migrations", async () => {
  const older = await freshDatabase("api");
  try {
    await withClient(older.url, (client) =>
      client.query("delete from schema_functions where name = 'is_open_request'"),
    );
    // No process listens there, because the services must not get that far.
    const urls = { databaseUrl: older.url, natsUrl: "nats://127.0.0.1:1", redisUrl: "redis://127.0.0.1:1" };
    // The api listens before it connects to its database, so it gets a free port.
    const services = [["api", "--listen", "127.0.0.1:0"], ["scheduler"]];
    const ends = await Promise.all(services.map((words) => berth(words, urls)));
    const lacking = {
      code: 1,
      err: expect.stringContaining("lacks functions/is_open_request; run `berth db migrate`"),
    };
    expect(ends).toMatchObject(services.map(() => lacking));
  } finally {
    await older.drop();
  }
});

test("refuses a cell whose database is the API tier's, and does not add it", async () => {
  const result = await berth(["cell", "add", "c2"], { databaseUrl: api.url, cellDatabaseUrl: api.url });
  expect(result).toMatchObject({
    code: 1,
    err: "berth: this is a database of kind api, not cell: check the URL of the cell database\n",
  });
  const { out } = await berth(["cell", "list"], { databaseUrl: api.url });
  expect(out.split("\n").map((line) => line.split("\t")[0])).not.toContain("c2");
});

test("refuses the database and the NATS account of another cell, also for a cell that exists, and changes no record", async () => {
  const other = await freshDatabase("cell");
  try {
    const natsUrl = "nats://api-c1:secret@127.0.0.1:1";
    const own = { databaseUrl: api.url, cellDatabaseUrl: cell.url };
    expect((await berth(["cell", "add", "c1"], { ...own, natsUrl })).code).toBe(0);
    const sibling = { databaseUrl: api.url, cellDatabaseUrl: other.url };
    expect((await berth(["cell", "add", "c3"], sibling)).code).toBe(0);
    const before = (await berth(["cell", "list"], own)).out;
    const ofOther = (owner: string, name: string) =>
      `berth: this is the database of cell ${owner}, not of cell ${name}: check the name of the cell and the URL of its database\n`;
    expect(await berth(["cell", "add", "c4"], own)).toEqual({ code: 1, out: "", err: ofOther("c1", "c4") });
    expect(await berth(["cell", "add", "c3"], own)).toEqual({ code: 1, out: "", err: ofOther("c1", "c3") });
    const sharedBus = await berth(["cell", "add", "c3"], {
      ...sibling,
      natsUrl: "nats://127.0.0.2:1,nats://api-c1:other@127.0.0.1:1",
    });
    expect(sharedBus).toMatchObject({
      code: 2,
      out: "",
      err: expect.stringContaining("the server and user of cell c1"),
    });
    expect((await berth(["cell", "list"], own)).out).toBe(before);
  } finally {
    await other.drop();
  }
});

test("removes the record of a cell only if the cell is disabled and empty, and says what it still has", async () => {
  const [own, left] = await Promise.all([freshDatabase("api"), freshDatabase("cell")]);
  try {
    const urls = { databaseUrl: own.url, cellDatabaseUrl: left.url };
    expect((await berth(["cell", "add", "c1"], urls)).code).toBe(0);
    await withClient(left.url, (client) =>
      client.query(
        "insert into hosts (name, root_provider, agent_id, up) values ('h1', gen_random_uuid(), 'agent', false)",
      ),
    );
    const remove = (name = "c1") => berth(["cell", "remove", name], { databaseUrl: own.url });
    const refused = await remove();
    expect(refused).toMatchObject({ code: 1, out: "" });
    expect(refused.err).toContain("- it is enabled: run `berth cell add c1 --disabled …` with its present URLs\n");
    expect(refused.err).toContain("- it still has hosts: 1 (h1)\n");
    expect((await berth(["cell", "add", "c1", "--disabled"], urls)).code).toBe(0);
    expect((await remove()).err).not.toContain("enabled");
    await withClient(left.url, (client) => client.query("delete from hosts"));
    expect(await remove()).toMatchObject({
      code: 0,
      err: "",
      out: expect.stringMatching(/^cell c1 is removed: restart /),
    });
    expect((await berth(["cell", "list"], { databaseUrl: own.url })).out).toBe("");
    expect(await remove()).toMatchObject({ code: 2, err: expect.stringContaining("there is no cell c1") });

    expect((await berth(["cell", "add", "c1", "--disabled"], urls)).code).toBe(0);
    await left.drop();
    const unread = await remove();
    expect(unread).toMatchObject({ code: 2, err: expect.stringContaining("cannot be read, so nobody knows") });
    expect((await berth(["cell", "list"], { databaseUrl: own.url })).out).toContain("c1");
  } finally {
    await Promise.allSettled([own.drop(), left.drop()]);
  }
});

test("a conductor does not start on the database of another cell", async () => {
  const older = await freshDatabase("cell");
  try {
    await claimCellNameAt(older.url, "c1");
    const urls = { cellDatabaseUrl: older.url, natsUrl: "nats://127.0.0.1:1" };
    const end = await berth(["conductor", "--cell", "c2", "--listen", "127.0.0.1:0"], urls);
    expect(end).toMatchObject({
      code: 1,
      err: expect.stringContaining("this is the database of cell c1, not of cell c2"),
    });
  } finally {
    await older.drop();
  }
});

test("says that the API database must be created where its server has none of this name", async () => {
  const url = new URL(api.url);
  url.pathname = "/missing";
  expect(await berth(["db", "migrate"], { databaseUrl: url.href })).toMatchObject({
    code: 2,
    err: expect.stringMatching(/"missing" does not exist\. Create that database .*, or name another\n$/),
  });
});

test("ends with 2 and one line for wrong arguments", async () => {
  const badName = await berth(["cell", "add", "C 1"], { databaseUrl: api.url });
  expect(badName).toMatchObject({
    code: 2,
    err: expect.stringMatching(/^berth cell add: NAME cannot be "C 1"; allowed: .*\n$/),
  });
  const noUrl = await berth(["cell", "add", "c1"], { databaseUrl: api.url });
  expect(noUrl).toMatchObject({
    code: 2,
    err: expect.stringContaining("BERTH_CELL_DATABASE_URL (--cell-database-url) is missing"),
  });
  expect(await berth(["fly"])).toMatchObject({ code: 2, err: expect.stringContaining('unknown command "fly"') });
});

test("lists the guests that a cell's database has forgotten, has them destroyed, and records that it was restored", async () => {
  const urls = { databaseUrl: api.url, cellDatabaseUrl: cell.url };
  expect((await berth(["cell", "add", "c1"], urls)).code).toBe(0);
  const empty = { code: 0, out: "no guests of cell c1 are in quarantine\n", err: "" };
  expect(await berth(["cell", "quarantine", "c1"], urls)).toEqual(empty);
  const server = "00000000-0000-4000-8000-000000000001";
  await withClient(cell.url, (client) =>
    client.query(
      `insert into quarantined_guests (host, attempt_id, server_uuid, state, reason)
       values ('host-1', 'task/0', $1, 'running', 'nobody knows it')`,
      [server],
    ),
  );
  const listed = await berth(["cell", "quarantine", "c1"], urls);
  expect(listed.out).toMatch(new RegExp(`^HOST .*\\nhost-1  ${server}  task/0   running  \\S+Z  nobody knows it\\n$`));
  const other = await berth(["cell", "quarantine", "c1", "--destroy", "somebody"], urls);
  expect([other.code, other.out]).toEqual([1, "0 guests will be destroyed when their hosts are compared next\n"]);
  const destroyed = await berth(["cell", "quarantine", "c1", "--destroy", server], urls);
  expect([destroyed.code, destroyed.out]).toEqual([
    0,
    "1 guests will be destroyed when their hosts are compared next\n",
  ]);
  expect((await berth(["cell", "quarantine", "c1"], urls)).out).toContain("to be destroyed");
  const incarnation = () =>
    withClient(cell.url, async (client) => (await client.query("select cell_incarnation() as now")).rows[0]?.now);
  const before = await incarnation();
  const restored = await berth(["cell", "restored", "c1"], urls);
  expect(restored.out).toContain(`is now incarnation ${await incarnation()}`);
  expect(await incarnation()).not.toBe(before);
  const unknown = await berth(["cell", "restored", "c9"], urls);
  expect([unknown.code, unknown.err]).toEqual([
    2,
    expect.stringContaining('there is no cell "c9": NAME must be one of '),
  ]);
});
