import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { findCycles } from "./tidy/find-cycles.ts";
import { namesDefinedTwice } from "./tidy/names-defined-twice.ts";
import { reachedFrom } from "./tidy/reached-from.ts";
import { type Import, listFiles, readSourceFile, type SourceFile } from "./tidy/source-file.ts";
import { readSqlFunctions } from "./tidy/sql-function.ts";

// The rules of the repository that a machine can check. There is no list of exceptions: either the code is changed or the rule.

const root = join(import.meta.dirname, "..");
const LABORATORIES = ["audit", "sim", "chaos", "replay", "cloud"];
const FOLDERS = [
  "core",
  "runtime",
  "adapters",
  "services",
  ...LABORATORIES,
  "cli",
  "test",
  "bench",
  "deploy",
  "release",
  "site",
  "examples",
];
const FILE_LINES_MAX = 400;
const FUNCTION_LINES_MAX = 70;
const MAIN_LINES_MAX = 40;
const SMALL_CLASS_LINES_MAX = 40;
const SQL_FUNCTION_LINES_MAX = 150;
const SCHEMAS = ["api", "cell"].map((kind) => `adapters/postgres/schema/${kind}`);

const files = FOLDERS.flatMap((folder) => listFiles(root, folder, (path) => path.endsWith(".ts"))).map((path) =>
  readSourceFile(root, path),
);
const isTest = (path: string) => path.endsWith(".test.ts") || path.startsWith("test/");
const product = files.filter((file) => !isTest(file.path));
/** Leaves out code that only demonstrates or measures the product. */
const shipped = product.filter(({ path }) => !/^(bench|examples)\//.test(path));

/** A file's room is its first folder, except that `adapters/postgres` and `services/api` are rooms of their own. */
function roomOf(path: string): string {
  const [first = "", second = ""] = path.split("/");
  return first === "adapters" || first === "services" ? `${first}/${second}` : first;
}

/** Folders in the order in which they build on each other. Each may import from those before it. Files beside them may import from all. */
const ORDERS: Readonly<Record<string, readonly string[]>> = {
  core: ["ledger", "candidates", "agent", "tasks", "scheduling", "stores", "placing", "audit", "discovery", "pinning"],
  "core/candidates": ["bound", "best", "every"],
  "core/stores": ["cell", "api"],
  "core/scheduling": ["packing", "filters", "weighers", "ranking", "request", "explain"],
  "services/api": [
    "identity",
    "policy",
    "placement",
    "http",
    "identity-api",
    "cells",
    "image",
    "network",
    "volume",
    "compute",
    "operators",
    "dashboard",
  ],
  "services/scheduler": ["cells", "placing", "sweeps"],
};

/** The folder in `folder` that contains the file. Null when the file is not in `folder`, or directly in it. */
function childOf(folder: string, path: string): string | null {
  if (!path.startsWith(`${folder}/`)) return null;
  const [child = "", ...rest] = path.slice(folder.length + 1).split("/");
  return rest.length === 0 ? null : child;
}

function isUpward(from: string, to: string): boolean {
  return Object.entries(ORDERS).some(([folder, order]) => {
    const [own, other] = [childOf(folder, from), childOf(folder, to)];
    return own !== null && other !== null && order.indexOf(other) > order.indexOf(own);
  });
}

function kebabOf(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1-$2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1-$2")
    .toLowerCase();
}

/** Whether code in `room` may import this. */
function isAllowed(room: string, { target, isLocal, isTypeOnly }: Import): boolean {
  const [layer] = room.split("/");
  const isMessage = target.startsWith("proto/gen/");
  const to = roomOf(target);
  switch (layer) {
    case "core":
      return isLocal && (to === "core" || (isMessage && isTypeOnly));
    case "runtime":
      return !isLocal || to === "runtime";
    case "adapters":
      return !isLocal || isMessage || ["core", "runtime", room].includes(to);
    case "services":
      return !isLocal || isMessage || ["core", "runtime", room].includes(to) || to.startsWith("adapters/");
    default:
      return !LABORATORIES.includes(layer ?? "") || to !== "cli";
  }
}

function violations(among: readonly SourceFile[], find: (file: SourceFile) => readonly string[]): readonly string[] {
  return among.flatMap((file) => find(file).map((what) => `${file.path}: ${what}`));
}

describe("rooms", () => {
  test("imports go one way: services → adapters → core, with runtime beside them, and no room imports another one of its kind", () => {
    const found = violations(product, (file) =>
      file.imports.filter((one) => !isAllowed(roomOf(file.path), one)).map((one) => `imports ${one.target}`),
    );
    expect(found).toEqual([]);
  });

  test("no file imports itself in a cycle", () => {
    const edges = new Map(
      files.map((file) => [file.path, file.imports.filter((one) => one.isLocal).map((one) => one.target)]),
    );
    expect(findCycles(edges)).toEqual([]);
  });

  test("core reads no clock, no randomness and no environment", () => {
    const core = product.filter((file) => file.path.startsWith("core/"));
    expect(violations(core, (file) => [...file.ambient])).toEqual([]);
  });

  test("in services only main.ts touches the process", () => {
    const services = product.filter((file) => file.path.startsWith("services/") && basename(file.path) !== "main.ts");
    expect(violations(services, (file) => [...file.ambient].filter((name) => name === "process"))).toEqual([]);
  });
});

describe("folders", () => {
  test("no folder imports from one that is listed after it", () => {
    const found = product.flatMap(({ path, imports }) =>
      imports
        .filter(({ target, isLocal }) => isLocal && isUpward(path, target))
        .map(({ target }) => `${path}: ${target}`),
    );
    expect(found).toEqual([]);
  });

  test("every folder beside the listed ones is listed, too", () => {
    const missing = product.flatMap(({ path }) =>
      Object.entries(ORDERS).flatMap(([folder, order]) => {
        const child = childOf(folder, path);
        return child === null || order.includes(child) ? [] : [path];
      }),
    );
    expect(missing).toEqual([]);
  });

  test("nothing that runs in a cell reaches the API database (law 3)", () => {
    const edges = new Map(
      product.map((file) => [file.path, file.imports.filter((one) => one.isLocal).map((one) => one.target)]),
    );
    const inCell = product
      .map(({ path }) => path)
      .filter((path) => /^services\/(conductor|compute-agent)\//.test(path));
    const ofApi = /^(core\/stores\/api|adapters\/(postgres|memory)\/api|adapters\/postgres\/schema\/api)\//;
    expect([...reachedFrom(inCell, edges)].filter((path) => ofApi.test(path))).toEqual([]);
  });

  test("core awaits nothing, and only the stores' contracts have promises", () => {
    const core = product.filter(({ path }) => path.startsWith("core/") && !path.startsWith("core/stores/"));
    expect(violations(core, (file) => file.waitingLines.map((line) => `line ${line}`))).toEqual([]);
  });
});

describe("names", () => {
  test("an exported name is defined once", () => {
    expect(namesDefinedTwice(shipped)).toEqual([]);
  });

  // Errors are defined beside the code that throws them, and `events.ts` has the same name in every service.
  test("a class's file has the class's name", () => {
    const found = violations(shipped, ({ path, classes }) =>
      basename(path) === "events.ts"
        ? []
        : classes
            .filter(({ name, isExported }) => isExported && `${kebabOf(name)}.ts` !== basename(path))
            .map(({ name }) => name),
    );
    expect(found).toEqual([]);
  });

  test(`a class that stands beside the one of its file has at most ${SMALL_CLASS_LINES_MAX} lines`, () => {
    const found = violations(shipped, ({ path, classes }) => {
      const others = classes.filter(({ name }) => `${kebabOf(name)}.ts` !== basename(path));
      if (others.length === classes.length) return [];
      return others.filter(({ lineCount }) => lineCount > SMALL_CLASS_LINES_MAX).map(({ name }) => name);
    });
    expect(found).toEqual([]);
  });

  test("every exported name is used", () => {
    const uses = new Map<string, number>();
    const texts = listFiles(root, "", (path) => /\.tsx?$/.test(path)).map((path) =>
      readFileSync(join(root, path), "utf8"),
    );
    for (const text of texts)
      for (const [name] of text.matchAll(/[A-Za-z_$][\w$]*/g)) uses.set(name, (uses.get(name) ?? 0) + 1);
    expect(violations(files, (file) => file.exports.filter((name) => (uses.get(name) ?? 0) < 2))).toEqual([]);
  });

  test("files and folders are kebab-case", () => {
    const kebab =
      /^([a-z0-9]+(-[a-z0-9]+)*\/)*[a-z0-9]+(-[a-z0-9]+)*(\.(property|long))?(\.(test|contract|bench))?\.ts$/;
    expect(files.map((file) => file.path).filter((path) => !kebab.test(path))).toEqual([]);
  });

  test("no file or folder has a meaningless name", () => {
    const empty = /(^|[/-])(utils?|helpers?|common|misc|managers?)(?=[/.-])|(^|\/)types(?=[/.])/;
    expect(files.map((file) => file.path).filter((path) => empty.test(path))).toEqual([]);
  });

  test("no file only exports the definitions of others", () => {
    expect(files.filter((file) => file.isBarrel).map((file) => file.path)).toEqual([]);
  });

  test("migrations are numbered, each number once", () => {
    for (const schema of SCHEMAS) {
      const names = listFiles(root, `${schema}/migrations`, () => true).map((path) => basename(path));
      expect(names.filter((name) => !/^\d{4}-[a-z0-9-]+\.sql$/.test(name))).toEqual([]);
      const numbers = names.map((name) => name.slice(0, 4));
      expect(numbers.filter((number, index) => numbers.indexOf(number) !== index)).toEqual([]);
    }
  });
});

describe("sizes", () => {
  test(`no file is longer than ${FILE_LINES_MAX} lines, no main.ts longer than ${MAIN_LINES_MAX}`, () => {
    const found = violations(files, ({ path, lineCount }) => {
      const max = basename(path) === "main.ts" ? MAIN_LINES_MAX : FILE_LINES_MAX;
      return lineCount > max ? [`${lineCount} lines`] : [];
    });
    expect(found).toEqual([]);
  });

  test(`no function is longer than ${FUNCTION_LINES_MAX} lines; in tests, functions inside it are not counted`, () => {
    const found = violations(files, (file) =>
      file.functions
        .map((one) => ({ line: one.line, length: isTest(file.path) ? one.ownLineCount : one.lineCount }))
        .filter(({ length }) => length > FUNCTION_LINES_MAX)
        .map(({ line, length }) => `the function at line ${line} has ${length} lines`),
    );
    expect(found).toEqual([]);
  });
});

describe("SQL", () => {
  const functions = SCHEMAS.flatMap((schema) => readSqlFunctions(root, `${schema}/functions`));

  test(`no function is longer than ${SQL_FUNCTION_LINES_MAX} lines`, () => {
    expect(functions.length).toBeGreaterThan(0);
    expect(functions.filter(({ lineCount }) => lineCount > SQL_FUNCTION_LINES_MAX).map(({ path }) => path)).toEqual([]);
  });

  test("each function has a file of its name, and migrations have no functions", () => {
    expect(functions.map(({ creates }) => creates)).toEqual(functions.map(({ name }) => [name]));
    const migrations = SCHEMAS.flatMap((schema) => listFiles(root, `${schema}/migrations`, () => true));
    const text = (path: string) => readFileSync(join(root, path), "utf8");
    expect(migrations.filter((path) => /^create (or replace )?function/m.test(text(path)))).toEqual([]);
  });

  test("each function opens with a comment", () => {
    expect(functions.filter(({ isExplained }) => !isExplained).map(({ path }) => path)).toEqual([]);
  });

  test("each function's `requires` line lists the functions that it calls", () => {
    expect(functions.map(({ path, requires }) => [path, requires])).toEqual(
      functions.map(({ path, calls }) => [path, calls]),
    );
  });

  test("functions that only older versions call are in former/, and name these versions", () => {
    const former = functions.filter(({ path }) => path.includes("/former/"));
    expect(functions.filter(({ calledBy }) => calledBy !== null)).toEqual(former);
  });
});

describe("text", () => {
  test("nothing has the type any", () => {
    expect(violations(files, (file) => file.anyLines.map((line) => `line ${line}`))).toEqual([]);
  });

  test("nothing is marked as unfinished, skipped or left for debugging", () => {
    const marks = new RegExp(
      ["TO" + "DO", "FIX" + "ME", "@ts-" + "ignore", "(test|describe|it)\\.(on" + "ly|sk" + "ip)\\("].join("|"),
    );
    expect(violations(files, (file) => file.text.match(marks)?.slice(0, 1) ?? [])).toEqual([]);
  });

  // Such an expression is tried again at each character of a run, so its time grows with the square of the length of what a caller sends.
  test("no text is cut or split at an expression that begins with a repetition and goes on after it", () => {
    const unit = String.raw`(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\[\n])`;
    const calls = new RegExp(String.raw`\.(?:replace|replaceAll|split|match|matchAll|search)\(\s*/(${unit}+)/`, "g");
    const slow = new RegExp(String.raw`(?:^|\|)${unit}[+*]\??(?!$|\|)`);
    const found = (text: string) =>
      [...text.matchAll(calls)].flatMap(([, body = ""]) => (slow.test(body) ? [body] : []));
    expect(
      found(String.raw`a.replace(/\/+$/, "").split(/ *; */).replace(/^x+|[{}]+$/g, "").replace(/\s+/g, "")`),
    ).toHaveLength(3);
    expect(violations(product, ({ text }) => found(text))).toEqual([]);
  });

  test("no text contains a path of somebody's machine", () => {
    const homes = new RegExp(`(^|[\\s"'\`(=:])/(${["wo" + "rk", "ro" + "ot", "home/[a-z]+"].join("|")})/`, "m");
    const texts = listFiles(root, "", (path) => /\.(ts|mjs|sql|md|json|ya?ml|sh|conf|proto|toml)$/.test(path));
    expect(texts.filter((path) => homes.test(readFileSync(join(root, path), "utf8")))).toEqual([]);
  });

  // Paths that only exist after something was run have no such ending.
  test("every path and link that a page names exists", () => {
    const folders = FOLDERS.concat("adapters", "proto", "docs", "scripts").join("|");
    const named = new RegExp(`\`((?:${folders})/[\\w./-]*(?:/|\\.(?:ts|sql|md|proto|sh|mjs|json|ya?ml)))\``, "g");
    const missing = listFiles(root, "", (path) => path.endsWith(".md")).flatMap((page) => {
      const text = readFileSync(join(root, page), "utf8");
      const links = [...text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)].map(([, link = ""]) => join(dirname(page), link));
      const paths = [...text.matchAll(named)].map(([, path = ""]) => path);
      return [...links, ...paths].filter((path) => !existsSync(join(root, path))).map((path) => `${page}: ${path}`);
    });
    expect(missing).toEqual([]);
  });
});
