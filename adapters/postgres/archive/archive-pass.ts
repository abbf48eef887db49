import { setTimeout as delay } from "node:timers/promises";
import type { ClientBase } from "pg";
import type { ArchiveCounts } from "./archive-counts.ts";

/** Where rows go before they are removed. */
export interface ArchiveSink {
  /** Resolves when the rows are kept for good: only then are they removed from the database. Rows may come twice, after a crash. */
  keep(table: string, rows: readonly unknown[]): Promise<void>;
}

export interface ArchiveOptions {
  /** Only what was over before this moment, in milliseconds since the epoch. */
  readonly beforeMs: number;
  /** Most keys that are looked at in one transaction. */
  readonly batchMax: number;
  /** The pause between two transactions, in which the services of the cloud get on with their work. */
  readonly pauseMs: number;
  /** Null: only count. */
  readonly sink: ArchiveSink | null;
  readonly signal?: AbortSignal;
}

/** Rows of one table that a batch removes. */
export interface Removal {
  readonly table: string;
  /** `delete from … where … returning …` or, to count, `select … from … where …`: its rows have the column `row`. */
  readonly text: string;
  readonly values: readonly unknown[];
}

const BEFORE_ALL = "00000000-0000-0000-0000-000000000000";

/**
 * Walks a table by its uuids, a batch of keys at a time, so that neither a transaction nor a read grows with the table, and a run that was
 * broken off loses nothing: what it did is committed, and the next run walks past it. `choose` has the batch's old keys; `remove` takes what it wants of
 * them out of the database. Cost: reads the table once, by its primary key.
 */
export async function archivePass(
  client: ClientBase,
  pass: {
    /** Rows of `key` and `old` (whether it may go), beyond `$1` in order of the key, at most `$2`; `$3` is the moment. */
    readonly choose: string;
    readonly remove: (keys: readonly string[]) => Promise<void>;
  },
  options: ArchiveOptions,
): Promise<void> {
  let after = BEFORE_ALL;
  for (;;) {
    options.signal?.throwIfAborted();
    const { rows } = await client.query<{ key: string; old: boolean }>(pass.choose, [
      after,
      options.batchMax,
      new Date(options.beforeMs),
    ]);
    const old = rows.filter((row) => row.old).map((row) => row.key);
    if (old.length > 0) await pass.remove(old);
    const last = rows.at(-1);
    if (last === undefined || rows.length < options.batchMax) return;
    after = last.key;
    if (old.length > 0) await delay(options.pauseMs);
  }
}

/**
 * Removes (or counts) rows in one transaction: kept by the sink first, then gone. A crash in between leaves them in both places, never in
 * neither. Statements run in order, each with what the ones before returned.
 */
export async function removeTogether(
  client: ClientBase,
  removals: readonly ((taken: ReadonlyMap<string, readonly ArchivedRow[]>) => Removal)[],
  options: Pick<ArchiveOptions, "sink">,
  counts: ArchiveCounts,
): Promise<void> {
  const taken = new Map<string, readonly ArchivedRow[]>();
  await client.query("begin");
  try {
    await client.query("set local lock_timeout = '2s'");
    for (const removal of removals) {
      const { table, text, values } = removal(taken);
      const { rows } = await client.query<{ row: ArchivedRow }>(text, [...values]);
      taken.set(
        table,
        rows.map(({ row }) => row),
      );
    }
    for (const [table, rows] of taken) if (rows.length > 0) await options.sink?.keep(table, rows);
    await client.query(options.sink === null ? "rollback" : "commit");
  } catch (error) {
    await client.query("rollback").catch(() => undefined);
    throw error;
  }
  for (const [table, rows] of taken) counts.add(table, rows.length);
}

/** A row as `to_jsonb` has it. */
export type ArchivedRow = Readonly<Record<string, unknown>>;
