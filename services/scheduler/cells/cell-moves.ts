import type { Holding } from "../../../core/ledger/holding.ts";
import type { BeginOutcome } from "../../../core/stores/cell/operation-store.ts";
import type { BeginOperation } from "../../../core/tasks/operation-step.ts";
import type { Server } from "../../../core/tasks/server.ts";
import { Batcher, COMMIT_SPACING_MS } from "../../../runtime/batcher.ts";
import type { SchedulerMoveStore } from "../ports.ts";

/**
 * A server as its cell's database has it, and its allocations there. Null when the server was never in the cell, or holds no allocations.
 */
export interface ServerInCell {
  readonly server: Server | null;
  readonly holding: Holding | null;
}

/**
 * Reads and begins moves of one cell's servers. Single calls that are made at about the same time go as one batch. Rejects as the store
 * does, and as `listen` does when the cell does not answer in time.
 */
export class CellMoves {
  readonly #store: SchedulerMoveStore;
  readonly #begins: Batcher<BeginOperation, BeginOutcome>;
  readonly #reads: Batcher<string, ServerInCell>;
  readonly #listen: <Answer>(call: Promise<Answer>) => Promise<Answer>;

  /** `listen` limits how long a call may take, and notes that the cell has not answered yet. */
  constructor(store: SchedulerMoveStore, maxItems: number, listen: <Answer>(call: Promise<Answer>) => Promise<Answer>) {
    this.#store = store;
    this.#listen = listen;
    this.#begins = new Batcher({ run: (begins) => store.begin(begins), maxItems, spacingMs: COMMIT_SPACING_MS });
    this.#reads = new Batcher({ run: (uuids) => readServers(store, uuids), maxItems });
  }

  /** Rejects as the store does. The move may then have begun or not. */
  begin(begin: BeginOperation): Promise<BeginOutcome> {
    return this.#listen(this.#begins.submit(begin));
  }

  server(uuid: string): Promise<ServerInCell> {
    return this.#listen(this.#reads.submit(uuid));
  }

  async hasMigration(uuid: string): Promise<boolean> {
    return (await this.#listen(this.#store.migrations({ uuids: [uuid], limit: 1 }))).length > 0;
  }
}

/** Reads the server before its allocations: a later change raises the server's revision, and `begin` then refuses what was read. */
async function readServers(store: SchedulerMoveStore, uuids: readonly string[]): Promise<ServerInCell[]> {
  const wanted = [...new Set(uuids)];
  const servers = new Map((await store.servers(wanted)).map((server) => [server.uuid, server]));
  const held = await store.holdings(wanted);
  const holdings = new Map(wanted.map((uuid, index) => [uuid, held[index] ?? null]));
  return uuids.map((uuid) => ({ server: servers.get(uuid) ?? null, holding: holdings.get(uuid) ?? null }));
}
