import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";

export type DatabaseKind = "cell" | "api";

/**
 * A file `migrations/NNNN-<name>.sql` with tables, types, indexes, the attachment of triggers, and data. It is applied to a database once.
 */
export interface MigrationFile {
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
  /** Programs that do not know the migration cannot work on its database. The file has a line `-- breaking: why`. */
  readonly breaking: boolean;
  /**
   * The statements run one by one and outside a transaction, as `create index concurrently` requires. The file has a line `-- concurrently:
   * why`. Each statement's semicolon ends a line, and every statement may be repeated.
   */
  readonly concurrent: boolean;
  /** Functions that its statements name, mostly those of triggers: lines `-- requires: name, name`. */
  readonly requires: readonly string[];
  /** The migrations that a baseline replaces, with their checksums: lines `-- replaces: name checksum`, in their order. */
  readonly replaces: ReadonlyMap<string, string>;
}

/** A file `functions/<name>.sql` with the one current text of a function, which is applied to a database again whenever it has changed. */
export interface SqlFunction {
  /** For example `ledger_apply`, or `former/cell_join_groups` for a function that only older versions call. */
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
  /**
   * Decides which of two texts of a function is newer. `functions/revisions.txt` has the number of the text that was last listed (`npm run
   * schema`), and a text that is not listed yet is newer than that.
   */
  readonly revision: number;
  /** Functions that it calls, and that must be created before it: lines `-- requires: name, name`. */
  readonly requires: readonly string[];
}

export interface SchemaFiles {
  readonly migrations: readonly MigrationFile[];
  /** Sorted so that each function follows those that it requires. */
  readonly functions: readonly SqlFunction[];
}

/** The directory of a database's files, beside this file. */
export function schemaDirectory(kind: DatabaseKind): URL {
  return new URL(`./${kind}/`, import.meta.url);
}

export function readSchemaFiles(directory: URL): SchemaFiles {
  return {
    migrations: readMigrations(new URL("migrations/", directory)),
    functions: readFunctions(new URL("functions/", directory)),
  };
}

function readMigrations(directory: URL): readonly MigrationFile[] {
  return readdirSync(directory)
    .filter((file) => /^\d{4}-.*\.sql$/.test(file))
    .sort()
    .map((file) => {
      const sql = readFileSync(new URL(file, directory), "utf8");
      return {
        name: file.replace(".sql", ""),
        sql,
        checksum: checksumOf(sql),
        breaking: marked(sql, "breaking").length > 0,
        concurrent: marked(sql, "concurrently").length > 0,
        requires: namesOf(sql),
        replaces: new Map(marked(sql, "replaces").map((line) => line.split(" ") as [string, string])),
      };
    });
}

function readFunctions(directory: URL): readonly SqlFunction[] {
  const listed = readRevisions(directory);
  const functions = listFiles(directory).map((file): SqlFunction => {
    const sql = readFileSync(new URL(file, directory), "utf8");
    const name = file.replace(".sql", "");
    const checksum = checksumOf(sql);
    const last = listed.get(name);
    const revision = last === undefined ? 1 : last.revision + Number(last.checksum !== checksum);
    return { name, sql, checksum, revision, requires: namesOf(sql) };
  });
  return inOrder(functions);
}

/** The texts of functions as they were last listed, by name. */
function readRevisions(directory: URL): ReadonlyMap<string, { revision: number; checksum: string }> {
  const file = new URL("revisions.txt", directory);
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
  return new Map(
    lines
      .map((line) => line.split(" "))
      .filter((words) => words.length === 3)
      .map(([name = "", revision, checksum = ""]) => [name, { revision: Number(revision), checksum }]),
  );
}

/** The content of `functions/revisions.txt` for these functions. */
export function describeRevisions(functions: readonly SqlFunction[]): string {
  const lines = functions.map(({ name, revision, checksum }) => `${name} ${revision} ${checksum}\n`);
  return lines.sort().join("");
}

function listFiles(directory: URL): readonly string[] {
  const inside = (folder: string) => {
    const url = new URL(folder, directory);
    return existsSync(url) ? readdirSync(url).map((file) => `${folder}${file}`) : [];
  };
  return [...inside("./"), ...inside("./former/")]
    .map((path) => path.slice(2))
    .filter((path) => path.endsWith(".sql"))
    .sort();
}

/** The named functions, each after those that it requires. Throws when functions require each other in a circle, or one is missing. */
export function inOrder(
  functions: readonly SqlFunction[],
  names: readonly string[] = functions.map((one) => one.name),
): readonly SqlFunction[] {
  const byName = new Map(functions.map((one) => [one.name, one]));
  const placed = new Set<SqlFunction>();
  const place = (name: string, path: readonly string[]): void => {
    const found = byName.get(name);
    if (found === undefined) throw new Error(`${path.at(-1)} requires the function ${name}, which has no file`);
    if (path.includes(name)) throw new Error(`functions require each other: ${[...path, name].join(" → ")}`);
    if (placed.has(found)) return;
    for (const required of found.requires) place(required, [...path, name]);
    placed.add(found);
  };
  for (const name of names) place(name, []);
  return [...placed];
}

function checksumOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** The texts after a marker, line by line. */
function marked(sql: string, marker: string): readonly string[] {
  return [...sql.matchAll(new RegExp(`^-- ${marker}: (.+)$`, "gm"))].map(([, text = ""]) => text.trim());
}

function namesOf(sql: string): readonly string[] {
  return marked(sql, "requires").flatMap((line) => line.split(/,\s*/));
}
