import type { Pool } from "pg";
import { Batcher } from "../../../runtime/batcher.ts";
import { encodeWrites, type ProviderWrite } from "./encode-writes.ts";
import { ask } from "./prepared.ts";

/** Most writes that share a transaction. */
const BATCH_MAX = 100;
/** Fewest that go beside another batch: a call costs as much as some of its writes. */
const BESIDE_ITEMS_MIN = 8;

/** SQLSTATEs by which the database has undone all of a statement: a bad value, a broken rule, a conflict, one of our functions'. */
const UNDONE = /^(22|23|40|P0)...$/;

/** A write that was done. */
export interface DoneWrite {
  readonly at: number;
  /** Of a new provider. */
  readonly root: string | null;
  readonly generation: number;
  readonly written_at_ms: number;
}

/** What its caller is told of one that was no creation. */
export function writtenOf({ generation, written_at_ms }: DoneWrite) {
  return { kind: "written", generation, updatedAtMs: written_at_ms } as const;
}

/**
 * Group commit for writes of providers, whatever their kind: those that arrive while others are on their way go together.
 * Resolves with what was done, or with null when nothing was: the write has to be made alone then, and is refused by its own
 * function if it is. When nobody knows what became of a batch (the connection was lost) all of its writes reject.
 */
export type WriteTogether = (write: ProviderWrite) => Promise<DoneWrite | null>;

/** See `WriteTogether`. The pool stays the caller's. */
export function writesTogether(pool: Pool): WriteTogether {
  const batcher = new Batcher({
    run: (writes: readonly ProviderWrite[]) => writeAll(pool, writes),
    maxItems: BATCH_MAX,
    concurrency: 2,
    besideItemsMin: BESIDE_ITEMS_MIN,
    maxQueued: 20_000,
  });
  return (write) => batcher.submit(write);
}

async function writeAll(pool: Pool, writes: readonly ProviderWrite[]): Promise<readonly (DoneWrite | null)[]> {
  const done = new Array<DoneWrite | null>(writes.length).fill(null);
  const together = firstOfEach(writes);
  if (together.length < 2) return done;
  try {
    const literal = encodeWrites(together.map((at) => writes[at]!));
    for (const row of await ask<DoneWrite>(pool, "select * from placement_write($1::placement_writes)", [literal]))
      done[together[row.at - 1]!] = row;
  } catch (error) {
    if (!UNDONE.test(String((error as { code?: unknown }).code))) throw error;
  }
  return done;
}

/** Positions of the writes that are about a provider of which no write before them is. */
function firstOfEach(writes: readonly ProviderWrite[]): readonly number[] {
  const named = new Set<string>();
  return writes.flatMap((write, at) => {
    const uuid = write.kind === "create" ? write.provider.uuid : write.uuid;
    if (named.has(uuid)) return [];
    named.add(uuid);
    return [at];
  });
}
