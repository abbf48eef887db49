import { assert } from "../../core/assert.ts";
import type { PlaceableRequest } from "../../core/cell/api-store.ts";
import { STORED_SPEC_BYTES_MAX } from "../../core/cell/spec-limits.ts";
import { Batcher } from "../../runtime/batcher.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { SchedulerStore } from "./ports.ts";

/** Specs of one answer of the database; a plain spec has less than 1 kB. */
const PAGE_BYTES_MAX = 4 << 20;
const READS_AT_ONCE = 2;

/** A request as its row had it. */
export interface ReadRequest extends PlaceableRequest {
  /** How long ago it was accepted: the database's word, and since then this process's monotonic clock. */
  readonly agedMs: () => number;
}

/** Reads requests from their rows by their uuids: those that are asked for in one turn of the event loop together. */
export class RequestReader {
  readonly #reads: Batcher<string, ReadRequest | null>;

  constructor(store: Pick<SchedulerStore, "placeable">, clock: Pick<Clock, "monotonic">, batchMax: number) {
    this.#reads = new Batcher({
      run: (uuids) => readPages(store, clock, uuids),
      maxItems: batchMax,
      concurrency: READS_AT_ONCE,
    });
  }

  /** Null: unknown. Rejects when the database could not be asked. */
  read(serverUuid: string): Promise<ReadRequest | null> {
    return this.#reads.submit(serverUuid);
  }
}

async function readPages(
  store: Pick<SchedulerStore, "placeable">,
  clock: Pick<Clock, "monotonic">,
  uuids: readonly string[],
): Promise<(ReadRequest | null)[]> {
  const limits = { specBytesMax: STORED_SPEC_BYTES_MAX, pageBytesMax: PAGE_BYTES_MAX };
  const read = new Map<string, ReadRequest>();
  for (let left: readonly string[] = [...new Set(uuids)]; left.length > 0; ) {
    const page = await store.placeable(left, limits);
    const readAtMs = clock.monotonic();
    for (const request of page.found) {
      read.set(request.serverUuid, { ...request, agedMs: () => request.ageMs + clock.monotonic() - readAtMs });
    }
    assert(page.left.length < left.length, "each page has a request at least");
    left = page.left;
  }
  return uuids.map((uuid) => read.get(uuid.toLowerCase()) ?? null);
}
