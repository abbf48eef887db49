import { CellAuditReader } from "../../adapters/postgres/audit/cell-audit-reader.ts";
import type { CellReading } from "../../core/audit/facts.ts";

const PAGE_ROWS = 1_000;

/** Reads one cell's facts at once, as an audit reads them in slices. The database does not know guests, so there are none. */
export async function readCellFacts(cell: string, databaseUrl: string): Promise<CellReading> {
  const reader = await CellAuditReader.open(cell, databaseUrl, PAGE_ROWS);
  try {
    const groups = new Map<string, CellReading["servers"][number]["group"]>();
    for await (const servers of reader.groupMembers()) for (const { uuid, group } of servers) groups.set(uuid, group);
    const { providers, ...frame } = reader.frame;
    const servers: CellReading["servers"][number][] = [];
    const consumers: CellReading["ledger"]["consumers"][number][] = [];
    const openTasks: CellReading["openTasks"][number][] = [];
    const closed = new Set<string>();
    for (let below: string | null = ""; below !== null; ) {
      await reader.fill();
      below = reader.bounds.toSorted()[0] ?? null;
      const slice = reader.take(below);
      servers.push(...slice.servers.map((server) => ({ ...server, group: groups.get(server.uuid) ?? null })));
      consumers.push(...slice.consumers);
      openTasks.push(...slice.openTasks);
      for (const uuid of slice.closed) closed.add(uuid);
    }
    const guests = { runningGuests: new Map(), copies: new Map() };
    return { ...frame, ledger: { providers, consumers }, servers, closed, openTasks, ...guests };
  } finally {
    await reader.close();
  }
}
