import { open } from "node:fs/promises";
import type { ArchiveSink } from "../../adapters/postgres/archive/archive-pass.ts";

export interface ArchiveFile {
  /** Lines `{"database": …, "table": …, "row": …}`; on the disk when `keep` resolves. */
  sinkOf(database: string): ArchiveSink;
  close(): Promise<void>;
}

/** Adds to the file, or makes it, for its owner alone: rows hold what users gave their servers. */
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
