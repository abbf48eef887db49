import type { Pool } from "pg";
import { Batcher } from "../../../runtime/batcher.ts";
import { encodeWrites, type ProviderWrite } from "./encode-writes.ts";
import { ask } from "./prepared.ts";

/** Maximum number of writes that share a transaction. */
const BATCH_MAX = 100;
/** The fewest writes that are sent while another batch is under way. A call costs as much as several of its writes. */
const BESIDE_ITEMS_MIN = 8;

/**
 * SQLSTATEs after which the database has undone the whole statement: a bad value, a violated constraint, a conflict, or an error that one
 * of our functions raised.
 */
const UNDONE = /^(22|23|40|P0)...$/;

/** The result of a write that was done. */
export interface DoneWrite {
  readonly at: number;
  /** The root of a new provider. */
  readonly root: string | null;
  readonly generation: number;
  readonly written_at_ms: number;
}

/** The part of the result that the caller of an update gets. */
export function writtenOf({ generation, written_at_ms }: DoneWrite) {
  return { kind: "written", generation, updatedAtMs: written_at_ms } as const;
}

/**
 * Group commit for writes to providers, whatever their kind: writes that arrive while others are under way go together. Resolves with the
 * result, or with null when nothing was written; then the write must be made alone, and its own function refuses it if necessary. When the
 * outcome of a batch is unknown (the connection was lost), all of its writes reject.
 */
export type WriteTogether = (write: ProviderWrite) => Promise<DoneWrite | null>;

/** See `WriteTogether`. The caller keeps the pool and ends it. */
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

/** The positions of those writes that are the first ones for their provider. */
function firstOfEach(writes: readonly ProviderWrite[]): readonly number[] {
  const named = new Set<string>();
  return writes.flatMap((write, at) => {
    const uuid = write.kind === "create" ? write.provider.uuid : write.uuid;
    if (named.has(uuid)) return [];
    named.add(uuid);
    return [at];
  });
}
