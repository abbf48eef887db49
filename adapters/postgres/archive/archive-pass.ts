import { setTimeout as delay } from "node:timers/promises";
import type { ClientBase } from "pg";
import type { ArchiveCounts } from "./archive-counts.ts";

/** The destination of rows before they are removed. */
export interface ArchiveSink {
  /**
   * Resolves when the rows are stored durably. Only then are they removed from the database. After a crash the same rows may come twice.
   */
  keep(table: string, rows: readonly unknown[]): Promise<void>;
}

export interface ArchiveOptions {
  /** Only rows that were finished before this time, in milliseconds since the epoch. */
  readonly beforeMs: number;
  /** Maximum number of keys that one transaction examines. */
  readonly batchMax: number;
  /** The pause between two transactions, which leaves the database to the cloud's services. */
  readonly pauseMs: number;
  /** Null only counts the rows. */
  readonly sink: ArchiveSink | null;
  readonly signal?: AbortSignal;
}

/** The rows of one table that a batch removes. */
export interface Removal {
  readonly table: string;
  /** `delete from … where … returning …` or, to count, `select … from … where …`. Its result has the column `row`. */
  readonly text: string;
  readonly values: readonly unknown[];
}

const BEFORE_ALL = "00000000-0000-0000-0000-000000000000";

/**
 * Walks a table by its UUIDs, one batch of keys at a time, so that neither a transaction nor a read grows with the table. An interrupted
 * run loses nothing: its batches are committed, and the next run passes their rows. `choose` selects the old keys of a batch, and `remove`
 * removes some of them from the database. Cost: reads the table once, by its primary key.
 */
export async function archivePass(
  client: ClientBase,
  pass: {
    /**
     * Returns rows of `key` and `old` (whether the row may be removed), beyond `$1` in the order of the key, at most `$2`. `$3` is the
     * time.
     */
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
 * Removes (or counts) rows in one transaction: the sink stores them first, then they are deleted. A crash in between leaves them in both
 * places, never in neither. Statements run in order, and each gets the rows that the previous ones returned.
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

/** A row as `to_jsonb` returns it. */
export type ArchivedRow = Readonly<Record<string, unknown>>;
