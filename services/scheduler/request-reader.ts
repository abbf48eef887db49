import { assert } from "../../core/assert.ts";
import type { PlaceableRequest } from "../../core/stores/api/api-store.ts";
import { STORED_SPEC_BYTES_MAX } from "../../core/tasks/spec-limits.ts";
import { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { Batcher, COMMIT_SPACING_MS } from "../../runtime/batcher.ts";
import type { Clock } from "../../runtime/clock.ts";
import { decodeKept } from "../../runtime/encode-once.ts";
import { TurnGate } from "../../runtime/turn-gate.ts";
import type { SchedulerStore } from "./ports.ts";
import type { SchedulerSettings } from "./settings.ts";

/** Maximum number of bytes of specs in one answer of the database. A plain spec has less than 1 kB. */
const PAGE_BYTES_MAX = 4 << 20;
const READS_AT_ONCE = 2;
/** Requests of a greater age are read from their rows: a sweep may have handed them to another scheduler, and the clocks may differ. */
const TOLD_AGE_MS_MAX = 5_000;

/** The encoded spec that a message carries, and when the bus has stored the message. */
export interface ToldSpec {
  readonly bytes: Uint8Array;
  readonly storedAtMs: number;
}

/** A request as its row described it when it was read. */
export interface ReadRequest extends PlaceableRequest {
  /**
   * Returns how long ago the request was accepted, from the database's clock when it was read, or the bus's when it was told, and this process's monotonic clock since
   * then.
   */
  readonly agedMs: () => number;
}

/**
 * Reads requests from their rows by their uuids. A query costs far more than one more row, so uuids that are asked for within some
 * milliseconds are read together. The requests are handed out a few in each turn of the event loop, since each of them is placed at once.
 */
export class RequestReader {
  readonly #reads: Batcher<string, ReadRequest | null>;
  readonly #gate: TurnGate;
  readonly #clock: Pick<Clock, "monotonic" | "now">;

  constructor(
    store: Pick<SchedulerStore, "placeable">,
    clock: Pick<Clock, "monotonic" | "now">,
    { batchMax, requestsPerTurn }: Pick<SchedulerSettings, "batchMax" | "requestsPerTurn">,
  ) {
    this.#clock = clock;
    this.#gate = new TurnGate(requestsPerTurn);
    this.#reads = new Batcher({
      run: (uuids) => readPages(store, clock, uuids),
      maxItems: batchMax,
      concurrency: READS_AT_ONCE,
      spacingMs: COMMIT_SPACING_MS,
      // A boot waits for its read before anything else is done for it, and a slow read would delay the next ones tenfold.
      spacingMsMax: COMMIT_SPACING_MS,
    });
  }

  /**
   * Returns the request as it was accepted, if the first delivery of its message carries it and it is young; null when its row must be read. The
   * row may say otherwise by now: the request was cancelled, or another scheduler has assigned it to a cell. So nothing is done with the request
   * but by compare-and-set on its row, which tells. Its spec never changes. Its age counts from when its message was stored, which is just after the request was accepted: the call may
   * have waited long for ports and volumes before that.
   */
  told({ id, told }: { readonly id: string; readonly told?: ToldSpec }): ReadRequest | null {
    if (told === undefined) return null;
    const spec = specOf(told.bytes);
    if (spec === null || spec.uuid !== id) return null;
    const nowMs = this.#clock.now();
    const ageMs = nowMs - told.storedAtMs;
    if ([ageMs, nowMs - spec.createdAtMs].some((ms) => Math.abs(ms) > TOLD_AGE_MS_MAX)) return null;
    const readAtMs = this.#clock.monotonic();
    return {
      serverUuid: id,
      state: "accepted",
      cell: null,
      assignment: 0,
      spec,
      specBytes: told.bytes.length,
      putOffs: 0,
      ageMs: Math.max(0, ageMs),
      agedMs: () => Math.max(0, ageMs) + this.#clock.monotonic() - readAtMs,
    };
  }

  /** Returns null when the request is unknown. Rejects when the database could not be asked. */
  async read(serverUuid: string): Promise<ReadRequest | null> {
    const read = await this.#reads.submit(serverUuid);
    await this.#gate.pass();
    return read;
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

function specOf(bytes: Uint8Array): ServerSpec | null {
  try {
    return decodeKept(ServerSpec, bytes);
  } catch {
    return null;
  }
}
