import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type DatabaseKind, schemaDirectory } from "../../adapters/postgres/schema/schema-files.ts";

/** A copy of a database's migrations and functions, which a test changes as another version would have. */
export interface SchemaCopy {
  readonly directory: URL;
  read(file: string): string;
  write(file: string, text: string): void;
  remove(): void;
}

export function copySchema(kind: DatabaseKind): SchemaCopy {
  const dir = mkdtempSync(join(tmpdir(), "berth-schema-"));
  cpSync(schemaDirectory(kind), dir, { recursive: true });
  return {
    directory: pathToFileURL(`${dir}/`),
    read: (file) => readFileSync(join(dir, file), "utf8"),
    write: (file, text) => writeFileSync(join(dir, file), text),
    remove: () => rmSync(dir, { recursive: true }),
  };
}
