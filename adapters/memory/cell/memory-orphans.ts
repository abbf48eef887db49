import { compare } from "../../../core/ledger/ledger-state.ts";
import { CONSUMER_TYPE_INSTANCE, CONSUMER_TYPE_MIGRATION } from "../../../core/ledger/model.ts";
import type { OrphanLook, OrphanPage } from "../../../core/stores/cell/operation-store.ts";
import type { CellState } from "./cell-state.ts";

interface TypedConsumer {
  readonly uuid: string;
  readonly type: string;
}

/** Examines one page of consumers: returns the orphans among them, and where the next look continues. */
export function orphanPageOf(
  cell: CellState,
  consumers: readonly TypedConsumer[],
  { after, lookAt, again, limit }: OrphanLook,
): OrphanPage {
  const sorted = consumers.map(({ uuid }) => uuid).sort(compare);
  const page = sorted.filter((uuid) => after === null || uuid > after).slice(0, lookAt);
  const lookedAt = new Set([...page, ...again]);
  return {
    orphans: orphansOf(cell, consumers)
      .filter((uuid) => lookedAt.has(uuid))
      .slice(0, limit),
    next: page.length === lookAt ? (page.at(-1) ?? null) : null,
  };
}

function orphansOf(cell: CellState, consumers: readonly TypedConsumer[]): readonly string[] {
  const isOfServer = (uuid: string): boolean => {
    const server = cell.servers.get(uuid);
    return server !== undefined && server.host !== null && server.status !== "DELETED";
  };
  const isOfMove = (uuid: string): boolean => {
    const migration = cell.migrations.get(uuid);
    return migration !== undefined && (!migration.ended || migration.holdsSource);
  };
  const orphans = consumers.filter(
    ({ uuid, type }) =>
      (type === CONSUMER_TYPE_INSTANCE && !isOfServer(uuid)) || (type === CONSUMER_TYPE_MIGRATION && !isOfMove(uuid)),
  );
  return orphans.map(({ uuid }) => uuid).sort(compare);
}
