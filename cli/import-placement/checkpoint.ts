import type { ClientBase } from "pg";
import type { RejectedRow } from "./rejected-rows.ts";

/** Counts and sums by name that describe a database's content. An import is right when source and ledger have the same. */
export type Facts = Readonly<Record<string, number>>;

/** The progress of an import. It is written in the same transaction as the rows that it counts. */
export interface Checkpoint {
  readonly source: string;
  /** Facts of the source when the import began. */
  readonly facts: Facts;
  /** Index of the step under way. */
  readonly step: number;
  /** The last id that the step has copied. */
  readonly afterId: number;
  readonly rejected: readonly RejectedRow[];
  readonly doneAt: Date | null;
}

// This table is not part of a migration, so that it exists only where an import was made.
export async function ensureCheckpoints(client: ClientBase): Promise<void> {
  await client.query(
    `create table if not exists placement_import (
       only_one boolean primary key default true check (only_one),
       source text not null,
       facts jsonb not null,
       step int not null,
       after_id bigint not null,
       misfits jsonb not null,
       done_at timestamptz
     )`,
  );
}

/** Reads the import that was made into this ledger, finished or not. */
export async function readCheckpoint(client: ClientBase): Promise<Checkpoint | null> {
  const { rows } = await client.query<Omit<Checkpoint, "afterId"> & { afterId: string }>(
    `select source, facts, step, after_id as "afterId", misfits as rejected, done_at as "doneAt" from placement_import`,
  );
  const [row] = rows;
  return row === undefined ? null : { ...row, afterId: Number(row.afterId) };
}

export async function writeCheckpoint(client: ClientBase, checkpoint: Checkpoint): Promise<void> {
  const { source, facts, step, afterId, rejected, doneAt } = checkpoint;
  await client.query(
    `insert into placement_import (source, facts, step, after_id, misfits, done_at) values ($1, $2, $3, $4, $5, $6)
     on conflict (only_one) do update set source = excluded.source, facts = excluded.facts, step = excluded.step,
       after_id = excluded.after_id, misfits = excluded.misfits, done_at = excluded.done_at`,
    [source, JSON.stringify(facts), step, afterId, JSON.stringify(rejected), doneAt],
  );
}
