import { describe, expect, expectTypeOf, test } from "vitest";
import {
  boolean,
  directory,
  duration,
  float,
  type HostPort,
  hostPort,
  integer,
  listOf,
  oneOf,
  text,
  url,
} from "./setting-kinds.ts";
import { optional, readSettings, SettingsError, setting } from "./settings.ts";

const declaration = {
  command: "berth try",
  about: "Tries settings.",
  positionals: ["NAME"],
  settings: {
    databaseUrl: optional(url("postgres", "postgresql"), { about: "the database" }),
    listen: setting(hostPort, { about: "where to listen", default: "127.0.0.1:8774" }),
    cells: setting(integer({ min: 1, max: 9 }), { about: "how many cells", default: "3" }),
    failShare: setting(float({ min: 0, max: 1 }), { about: "share that fails", default: "0.05" }),
    lease: setting(duration({ minMs: 100, maxMs: 60_000 }), { about: "how long", default: "5s" }),
    auth: setting(oneOf("none", "keystone"), { about: "who may", default: "none" }),
    fsync: setting(boolean, { about: "durable", default: "true" }),
    agents: setting(listOf(hostPort), { about: "the agents", default: "a:1,b:2" }),
    cell: setting(text(), { about: "the cell's name" }),
    stateDir: optional(directory, { about: "where to keep the state" }),
  },
} as const;

function read(argv: readonly string[], env: Record<string, string> = {}) {
  const result = readSettings(declaration, { argv, env });
  if (result.kind === "help") throw new Error("not asked for help");
  return result;
}

test("accepts one or more values for a last argument that may be repeated", () => {
  const several = { command: "berth x", about: "Does x.", positionals: ["A", "B…"], settings: {} };
  const positionalsOf = (argv: readonly string[]) => {
    const outcome = readSettings(several, { argv, env: {} });
    return outcome.kind === "settings" ? outcome.positionals : null;
  };
  expect(positionalsOf(["1", "2", "3"])).toEqual(["1", "2", "3"]);
  expect(() => positionalsOf(["1"])).toThrow("B… is missing");
  const free = { ...declaration, positionals: ["[A…]"] };
  for (const argv of [[], ["1", "2"]]) {
    const outcome = readSettings(free, { argv: [...argv, "--cell", "c1"], env: {} });
    expect(outcome.kind === "settings" && outcome.positionals).toEqual(argv);
  }
});

test("prefers the flag to the environment and the environment to the default", () => {
  const { settings, positionals } = read(["x", "--cell", "c1", "--cells=5"], { BERTH_CELLS: "4", BERTH_LEASE: "1.5s" });
  expect(positionals).toEqual(["x"]);
  expect(settings).toEqual({
    databaseUrl: null,
    listen: { host: "127.0.0.1", port: 8774 },
    cells: 5,
    failShare: 0.05,
    lease: 1500,
    auth: "none",
    fsync: true,
    agents: [
      { host: "a", port: 1 },
      { host: "b", port: 2 },
    ],
    cell: "c1",
    stateDir: null,
  });
  expect(Object.isFrozen(settings)).toBe(true);
  expectTypeOf(settings.databaseUrl).toEqualTypeOf<string | null>();
  expectTypeOf(settings.cells).toEqualTypeOf<number>();
  expectTypeOf(settings.auth).toEqualTypeOf<"none" | "keystone">();
  expectTypeOf(settings.agents).toEqualTypeOf<readonly HostPort[]>();
});

test("treats an empty variable as one that is not set", () => {
  expect(read(["x", "--cell", "c1"], { BERTH_CELLS: "" }).settings.cells).toBe(3);
});

test("reads switches as --flag, --no-flag and words in the environment", () => {
  expect(read(["x", "--cell=c", "--no-fsync"]).settings.fsync).toBe(false);
  expect(read(["x", "--cell=c", "--fsync"], { BERTH_FSYNC: "off" }).settings.fsync).toBe(true);
  expect(read(["x", "--cell=c"], { BERTH_FSYNC: "0" }).settings.fsync).toBe(false);
});

describe("names the wrong value and the allowed ones, in one line", () => {
  test.each<[readonly string[], Record<string, string>, string]>([
    [["x"], {}, "BERTH_CELL (--cell) is missing: the cell's name; allowed: text"],
    [["x", "--cell=c", "--cells=0"], {}, 'BERTH_CELLS (--cells) is wrong: "0"; allowed: an integer from 1 to 9'],
    [["x", "--cell=c", "--cells=3.5"], {}, 'BERTH_CELLS (--cells) is wrong: "3.5"; allowed: an integer from 1 to 9'],
    [
      ["x", "--cell=c"],
      { BERTH_LISTEN: "8774" },
      'BERTH_LISTEN (--listen) is wrong: "8774"; allowed: host:port, like 127.0.0.1:8774',
    ],
    [
      ["x", "--cell=c"],
      { BERTH_LEASE: "5" },
      'BERTH_LEASE (--lease) is wrong: "5"; allowed: a duration like 250ms, 5s or 2m, from 100 to 60000 ms',
    ],
    [["x", "--cell=c"], { BERTH_AUTH: "no" }, 'BERTH_AUTH (--auth) is wrong: "no"; allowed: none | keystone'],
    [
      ["x", "--cell=c"],
      { BERTH_FAIL_SHARE: "5%" },
      'BERTH_FAIL_SHARE (--fail-share) is wrong: "5%"; allowed: a number from 0 to 1',
    ],
    [
      ["x", "--cell=c", "--cels=1"],
      {},
      "Unknown option '--cels': did you mean --cells or --cell; see berth try --help",
    ],
    [["x", "--cell=c", "--no-fsyn"], {}, "Unknown option '--no-fsyn': did you mean --no-fsync; see berth try --help"],
    [["x", "--cell=c", "--rhubarb"], {}, "Unknown option '--rhubarb'; see berth try --help"],
    [["x", "--cell="], {}, "BERTH_CELL (--cell) is empty; allowed: text"],
    [
      ["x", "--cell=c", "--state-dir", ""],
      {},
      "BERTH_STATE_DIR (--state-dir) is empty; allowed: the path of a directory, like .berth",
    ],
    [["--cell=c"], {}, "NAME is missing; usage: berth try NAME [flags]"],
    [["x", "y", "--cell=c"], {}, 'unexpected argument "y"; usage: berth try NAME [flags]'],
  ])("%j %j", (argv, env, message) => {
    expect(() => read(argv, env)).toThrow(new SettingsError(message));
  });
});

test("names everything that is wrong at once, one line each", () => {
  const argv = ["--database-url=mysql://u:secret@h/d", "--cells=0", "--cels", "1", "-x", "--fsync=1", "--agents"];
  expect(() => read(argv, { BERTH_LEASE: "5" })).toThrow(
    [
      "8 errors:",
      "  Unknown option '--cels': did you mean --cells or --cell; see berth try --help",
      "  Unknown option '-x'; see berth try --help",
      "  Option '--fsync' does not take an argument; see berth try --help",
      "  Option '--agents <value>' argument missing; see berth try --help",
      "  BERTH_DATABASE_URL (--database-url) is wrong; allowed: a URL beginning with postgres:// or postgresql://",
      '  BERTH_CELLS (--cells) is wrong: "0"; allowed: an integer from 1 to 9',
      '  BERTH_LEASE (--lease) is wrong: "5"; allowed: a duration like 250ms, 5s or 2m, from 100 to 60000 ms',
      "  BERTH_CELL (--cell) is missing: the cell's name; allowed: text",
    ].join("\n"),
  );
  expect(() => read(["--cells=0"])).toThrow(/^3 errors:\n {2}NAME is missing; usage.*\n.*CELLS.*\n.*CELL /);
  expect(() => read(["x", "--cell", "--cells=7", "--lease=9"])).toThrow(
    [
      "2 errors:",
      "  Option '--cell' needs a value; write one that begins with a dash as --cell=VALUE; see berth try --help",
      '  BERTH_LEASE (--lease) is wrong: "9"; allowed: a duration like 250ms, 5s or 2m, from 100 to 60000 ms',
    ].join("\n"),
  );
});

test("takes a negative number after a flag for the flag's value, and says how to write it", () => {
  expect(() => read(["x", "--cell=c", "--cells", "-5"])).toThrow(
    new SettingsError(
      "Option '--cells' needs a value; write one that begins with a dash as --cells=VALUE; see berth try --help",
    ),
  );
});

test("never shows a bad URL, which may hold a password", () => {
  expect(() => read(["x", "--cell=c", "--database-url", "mysql://u:secret@h/d"])).toThrow(
    new SettingsError(
      "BERTH_DATABASE_URL (--database-url) is wrong; allowed: a URL beginning with postgres:// or postgresql://",
    ),
  );
});

test("explains every flag, its variable and its default when asked for help", () => {
  const result = readSettings(declaration, { argv: ["--help"], env: {} });
  expect(result).toMatchObject({ kind: "help", text: expect.stringContaining("usage: berth try NAME [flags]") });
  for (const part of ["--database-url URL", "BERTH_DATABASE_URL", "default 5s", "--[no-]fsync", "required"]) {
    expect(result).toMatchObject({ text: expect.stringContaining(part) });
  }
});

test("reads hosts with and without brackets, and reads a bare port as all addresses", () => {
  expect(hostPort.parse("[::1]:80")).toEqual({ host: "::1", port: 80 });
  expect(hostPort.parse(":80")).toEqual({ host: "0.0.0.0", port: 80 });
  expect(hostPort.parse("db.example.org:0")).toEqual({ host: "db.example.org", port: 0 });
  for (const bad of ["::1:80", "a:65536", "a:", "a b:1", "http://a:1"]) expect(hostPort.parse(bad)).toBeUndefined();
});
