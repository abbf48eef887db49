import { assert } from "../../core/assert.ts";
import type { PlaceableRequest } from "../../core/stores/api/api-store.ts";
import { STORED_SPEC_BYTES_MAX } from "../../core/tasks/spec-limits.ts";
import { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { Batcher, COMMIT_SPACING_MS } from "../../runtime/batcher.ts";
import type { Clock } from "../../runtime/clock.ts";
import { encodeOnce } from "../../runtime/encode-once.ts";
import { TurnGate } from "../../runtime/turn-gate.ts";
import type { SchedulerStore } from "./ports.ts";
import type { SchedulerSettings } from "./settings.ts";

/** Maximum number of bytes of specs in one answer of the database. A plain spec has less than 1 kB. */
const PAGE_BYTES_MAX = 4 << 20;
const READS_AT_ONCE = 2;
/**
 * A request whose message arrives later than this after it was accepted, or earlier, is read from its row: it may have been cancelled or placed
 * since, or the clocks of the api and of this process differ.
 */
const FRESH_MS = 2_000;

/** A request as its row described it when it was read. */
export interface ReadRequest extends PlaceableRequest {
  /**
   * Returns how long ago the request was accepted, from the database's clock when it was read and this process's monotonic clock since
   * then.
   */
  readonly agedMs: () => number;
}

/**
 * Reads requests from their rows by their uuids. A query costs far more than one more row, so uuids that are asked for within some
 * milliseconds are read together. The requests are handed out a few in each turn of the event loop, since each of them is placed at once.
 * A request that came with its message right after it was accepted is not read: its row can only have changed if it was cancelled or swept in the
 * meantime, and whatever is written for it next finds that out.
 */
export class RequestReader {
  readonly #reads: Batcher<string, ReadRequest | null>;
  readonly #gate: TurnGate;
  readonly #clock: Pick<Clock, "now" | "monotonic">;

  constructor(
    store: Pick<SchedulerStore, "placeable">,
    clock: Pick<Clock, "now" | "monotonic">,
    { batchMax, requestsPerTurn }: Pick<SchedulerSettings, "batchMax" | "requestsPerTurn">,
  ) {
    this.#gate = new TurnGate(requestsPerTurn);
    this.#clock = clock;
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
   * Returns null when the request is unknown. Rejects when the database could not be asked. `sent` is the spec that came with the first delivery of
   * the request's message.
   */
  async read(serverUuid: string, sent: ServerSpec | null = null): Promise<ReadRequest | null> {
    const fresh = sent === null ? null : this.#freshly(serverUuid, sent);
    const read = fresh ?? (await this.#reads.submit(serverUuid));
    await this.#gate.pass();
    return read;
  }

  #freshly(serverUuid: string, spec: ServerSpec): ReadRequest | null {
    const ageMs = this.#clock.now() - spec.createdAtMs;
    // The servers of one call are placed together, and their rows tell which of them are left.
    if (spec.uuid !== serverUuid || spec.reservationId !== "" || ageMs < 0 || ageMs > FRESH_MS) return null;
    const readAtMs = this.#clock.monotonic();
    return {
      ...{ serverUuid, state: "accepted", cell: null, assignment: 0, putOffs: 0 },
      ...{ spec, specBytes: encodeOnce(ServerSpec, spec).length, ageMs },
      agedMs: () => ageMs + this.#clock.monotonic() - readAtMs,
    };
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
