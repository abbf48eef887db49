import { readApiFacts } from "../adapters/postgres/audit/read-api-facts.ts";
import { readCellFacts } from "../adapters/postgres/audit/read-cell-facts.ts";
import type { CellReading, CloudFacts, RunningGuest } from "../core/audit/facts.ts";
import type { GuestReading } from "./read-guests.ts";

type GuestsByHost = ReadonlyMap<string, readonly RunningGuest[]>;

export interface AuditedCell {
  readonly name: string;
  readonly databaseUrl: string;
  /** Reads the running guests on the cell's hosts, when its agents are in this process. */
  readonly runningGuests?: () => GuestsByHost | Promise<GuestsByHost>;
  /** Reads all guests on the cell's hosts, running or not. */
  readonly copies?: () => GuestsByHost | Promise<GuestsByHost>;
}

export interface AuditedCloud {
  readonly apiUrl: string;
  readonly cells: readonly AuditedCell[];
  /** Reads the guests on hosts whose agents are in other processes. */
  readonly readGuests?: (() => Promise<GuestReading>) | undefined;
}

export interface CloudReading {
  readonly facts: CloudFacts;
  /** Cells that could not be read, each with the reason. */
  readonly unread: ReadonlyMap<string, string>;
  /** Agents, journals and hosts whose guests are unknown, with the reason. */
  readonly unreadGuests: ReadonlyMap<string, string>;
}

/** Makes one reading of the whole cloud. A cell that cannot be read is named and left out. Throws when the API database cannot be read. */
export async function readCloud(cloud: AuditedCloud): Promise<CloudReading> {
  const unread = new Map<string, string>();
  const read = await Promise.all(
    cloud.cells.map(async (cell): Promise<CellReading | null> => {
      try {
        const facts = await readCellFacts(cell.name, cell.databaseUrl);
        const [runningGuests, copies] = await Promise.all([cell.runningGuests?.(), cell.copies?.()]);
        return { ...facts, runningGuests: runningGuests ?? new Map(), copies: copies ?? new Map() };
      } catch (error) {
        unread.set(cell.name, (error as Error).message);
        return null;
      }
    }),
  );
  const cells = read.filter((facts) => facts !== null);
  const [api, guests] = await Promise.all([readApiFacts(cloud.apiUrl), cloud.readGuests?.()]);
  if (guests === undefined) return { facts: { cells, api }, unread, unreadGuests: new Map() };
  const dealt = dealGuests(cells, guests, unread.size === 0);
  return { facts: { cells: dealt.cells, api }, unread, unreadGuests: dealt.unread };
}

/** Assigns each host's guests to the cell that has the host. A host that no cell or several cells have is reported as unread. */
function dealGuests(
  cells: readonly CellReading[],
  reading: GuestReading,
  allCellsRead: boolean,
): { readonly cells: readonly CellReading[]; readonly unread: ReadonlyMap<string, string> } {
  const unread = new Map(reading.unread);
  const guestsOf = cells.map((cell) => new Map(cell.runningGuests));
  const copiesOf = cells.map((cell) => new Map(cell.copies));
  for (const [host, guests] of reading.hosts) {
    const owners = cells.flatMap((cell, index) => (cell.hosts.has(host) ? [index] : []));
    const [owner] = owners;
    if (owners.length === 1 && owner !== undefined) {
      guestsOf[owner]?.set(host, guests);
      copiesOf[owner]?.set(host, reading.copies.get(host) ?? []);
    } else if (owners.length > 1) unread.set(`host ${host}`, "several cells have a host of this name");
    else if (allCellsRead) unread.set(`host ${host}`, "no cell has it");
  }
  const dealt = cells.map((cell, index) => ({
    ...cell,
    runningGuests: guestsOf[index] ?? cell.runningGuests,
    copies: copiesOf[index] ?? cell.copies,
  }));
  return { cells: dealt, unread };
}
