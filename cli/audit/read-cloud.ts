import { readApiFacts } from "../../adapters/postgres/audit/read-api-facts.ts";
import { readCellFacts } from "../../adapters/postgres/audit/read-cell-facts.ts";
import type { CellFacts, CloudFacts, RunningGuest } from "../../core/audit/facts.ts";

export interface AuditedCell {
  readonly name: string;
  readonly databaseUrl: string;
  /** What runs on its hosts, when the agents can be asked. */
  readonly runningGuests?: () => ReadonlyMap<string, readonly RunningGuest[]>;
}

export interface CloudReading {
  readonly facts: CloudFacts;
  /** Cells that could not be read, each with the reason: nothing is known of them. */
  readonly unread: ReadonlyMap<string, string>;
}

/** One reading of the whole cloud. A cell that cannot be read is named and left out; without the API database it throws. */
export async function readCloud(apiUrl: string, cells: readonly AuditedCell[]): Promise<CloudReading> {
  const unread = new Map<string, string>();
  const read = await Promise.all(
    cells.map(async (cell): Promise<CellFacts | null> => {
      try {
        const facts = await readCellFacts(cell.name, cell.databaseUrl);
        return { ...facts, runningGuests: cell.runningGuests?.() ?? facts.runningGuests };
      } catch (error) {
        unread.set(cell.name, (error as Error).message);
        return null;
      }
    }),
  );
  const api = await readApiFacts(apiUrl);
  return { facts: { cells: read.filter((facts) => facts !== null), api }, unread };
}
