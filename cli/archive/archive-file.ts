import { open } from "node:fs/promises";
import type { ArchiveSink } from "../../adapters/postgres/archive/archive-pass.ts";

export interface ArchiveFile {
  /** Writes lines `{"database": …, "table": …, "row": …}`, which are on the disk when `keep` resolves. */
  sinkOf(database: string): ArchiveSink;
  close(): Promise<void>;
}

/** Appends to the file, or creates it. Only its owner may read it, because rows contain users' data. */
export async function openArchiveFile(path: string): Promise<ArchiveFile> {
  const file = await open(path, "a", 0o600);
  return {
    sinkOf: (database) => ({
      async keep(table, rows) {
        await file.appendFile(rows.map((row) => `${JSON.stringify({ database, table, row })}\n`).join(""));
        await file.datasync();
      },
    }),
    close: () => file.close(),
  };
}
