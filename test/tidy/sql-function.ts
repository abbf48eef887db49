import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { listFiles } from "./source-file.ts";

/** A file `functions/<name>.sql` of a database's schema, reduced to the facts that the rules need. */
export interface SqlFunctionFile {
  readonly path: string;
  /** The name of its file. For a former overload, the part of it before a hyphen. */
  readonly name: string;
  /** Names of the functions that it creates. */
  readonly creates: readonly string[];
  /** The number of lines from `create` to the end. */
  readonly lineCount: number;
  readonly requires: readonly string[];
  /** Functions of the same database that its text calls. */
  readonly calls: readonly string[];
  /** Whether a comment precedes the function. */
  readonly isExplained: boolean;
  /** For a function that only older versions call: these versions. */
  readonly calledBy: string | null;
}

export function readSqlFunctions(root: string, directory: string): readonly SqlFunctionFile[] {
  const paths = listFiles(root, directory, (path) => path.endsWith(".sql"));
  const names = new Set(paths.map(nameOf));
  return paths.map((path) => readSqlFunction(path, readFileSync(join(root, path), "utf8"), names));
}

const nameOf = (path: string): string => basename(path, ".sql").split("-")[0] ?? "";

function readSqlFunction(path: string, text: string, names: ReadonlySet<string>): SqlFunctionFile {
  const name = nameOf(path);
  const code = text.slice(Math.max(0, text.indexOf("\ncreate")));
  const called = [...code.replace(/--.*$/gm, "").matchAll(/\b([a-z_]+)\(/g)].map(([, word = ""]) => word);
  return {
    path,
    name,
    creates: [...text.matchAll(/^create or replace function ([a-z_]+)/gm)].map(([, created = ""]) => created),
    lineCount: code.trim().split("\n").length,
    requires: [...text.matchAll(/^-- requires: (.+)$/gm)].flatMap(([, list = ""]) => list.split(", ")),
    calls: [...new Set(called)].filter((word) => word !== name && names.has(word)).sort(),
    isExplained: /^-- (?!requires:|called by:)/.test(text.replace(/^-- (requires|called by): .*\n(--\n)?/gm, "")),
    calledBy: /^-- called by: (.+)$/m.exec(text)?.[1] ?? null,
  };
}
