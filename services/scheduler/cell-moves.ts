import type { BeginOperation, BeginOutcome, Holding } from "../../core/cell/operation-store.ts";
import type { Server } from "../../core/cell/server.ts";
import { Batcher, COMMIT_SPACING_MS } from "../../runtime/batcher.ts";
import type { SchedulerMoveStore } from "./ports.ts";

/** A server as its cell knows it, and what it holds there; null: it was never here, or holds nothing. */
export interface ServerInCell {
  readonly server: Server | null;
  readonly holding: Holding | null;
}

/**
 * The servers of one cell that are to move: single calls that come together go as one batch. Rejects as the store does, and as `listen` does
 * when the cell does not answer in time.
 */
export class CellMoves {
  readonly #store: SchedulerMoveStore;
  readonly #begins: Batcher<BeginOperation, BeginOutcome>;
  readonly #reads: Batcher<string, ServerInCell>;
  readonly #listen: <Answer>(call: Promise<Answer>) => Promise<Answer>;

  /** `listen`: bounds how long a call may take, and notes that the cell owes an answer. */
  constructor(store: SchedulerMoveStore, maxItems: number, listen: <Answer>(call: Promise<Answer>) => Promise<Answer>) {
    this.#store = store;
    this.#listen = listen;
    this.#begins = new Batcher({ run: (begins) => store.begin(begins), maxItems, spacingMs: COMMIT_SPACING_MS });
    this.#reads = new Batcher({ run: (uuids) => readServers(store, uuids), maxItems });
  }

  /** When it rejects nobody knows whether it happened. */
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

/** The server first: whoever changes it afterwards raises its revision, and what it holds is not taken at its word then. */
async function readServers(store: SchedulerMoveStore, uuids: readonly string[]): Promise<ServerInCell[]> {
  const wanted = [...new Set(uuids)];
  const servers = new Map((await store.servers(wanted)).map((server) => [server.uuid, server]));
  const held = await store.holdings(wanted);
  const holdings = new Map(wanted.map((uuid, index) => [uuid, held[index] ?? null]));
  return uuids.map((uuid) => ({ server: servers.get(uuid) ?? null, holding: holdings.get(uuid) ?? null }));
}
