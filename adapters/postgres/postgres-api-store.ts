import type { Pool } from "pg";
import type {
  ApiStore,
  AssignCell,
  AssignOutcome,
  CellRecord,
  FlavorRecord,
  RequestFailure,
  RequestQuery,
  RequestRecord,
} from "../../core/cell/api-store.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { Batcher, COMMIT_SPACING_MS } from "../../runtime/batcher.ts";
import { markArrived, readUnarrived, takeLost } from "./api/arrivals.ts";
import { putCell, readCells } from "./api/cells.ts";
import { createFlavor, deleteFlavor, readFlavor, readFlavors, updateExtraSpecs } from "./api/flavors.ts";
import { listRequests, readRequests } from "./api/read-requests.ts";
import {
  acceptRequests,
  assignCells,
  type Cancellation,
  cancelRequests,
  failRequests,
  markDeleted,
  takeStale,
} from "./api/write-requests.ts";
import { onlyUuids, queryStored } from "./store-query.ts";

/**
 * The API tier's database in Postgres. Every write is one statement and one transaction; elements of a batch that name one
 * request twice go in transactions of their own, in their order. All time but `created_at` is the database's. Throws
 * `StoreError`; whatever was `unavailable` may be asked again.
 */
export class PostgresApiStore implements ApiStore {
  readonly #pool: Pool;
  /** Deletes come one by one, and each is a commit. */
  readonly #cancels: Batcher<Cancellation, RequestRecord | null>;

  /** The pool goes over to the store: `close` ends it. */
  constructor(pool: Pool) {
    this.#pool = pool;
    this.#cancels = new Batcher({
      run: (cancellations) => cancelRequests(pool, cancellations),
      maxItems: 200,
      concurrency: 2,
      spacingMs: COMMIT_SPACING_MS,
    });
  }

  cells(): Promise<readonly CellRecord[]> {
    return readCells(this.#pool);
  }

  putCell(cell: CellRecord): Promise<void> {
    return putCell(this.#pool, cell);
  }

  flavors(): Promise<readonly FlavorRecord[]> {
    return readFlavors(this.#pool);
  }

  flavor(id: string): Promise<FlavorRecord | null> {
    return readFlavor(this.#pool, id);
  }

  createFlavor(flavor: FlavorRecord): Promise<"created" | "id-taken" | "name-taken"> {
    return createFlavor(this.#pool, flavor);
  }

  deleteFlavor(id: string): Promise<boolean> {
    return deleteFlavor(this.#pool, id);
  }

  updateExtraSpecs(
    flavorId: string,
    update: (extraSpecs: Readonly<Record<string, string>>) => Readonly<Record<string, string>>,
  ): Promise<Readonly<Record<string, string>> | null> {
    return updateExtraSpecs(this.#pool, flavorId, update);
  }

  accept(specs: readonly ServerSpec[]): Promise<void> {
    return acceptRequests(this.#pool, specs);
  }

  requests(serverUuids: readonly string[]): Promise<readonly RequestRecord[]> {
    return readRequests(this.#pool, serverUuids);
  }

  listRequests(query: RequestQuery): Promise<readonly RequestRecord[]> {
    return listRequests(this.#pool, query);
  }

  assignCells(assignments: readonly AssignCell[]): Promise<readonly AssignOutcome[]> {
    return assignCells(this.#pool, assignments);
  }

  failRequests(failures: readonly RequestFailure[]): Promise<void> {
    return failRequests(this.#pool, failures);
  }

  cancel(serverUuid: string, requestId: string): Promise<RequestRecord | null> {
    if (onlyUuids([serverUuid]).length === 0) return Promise.resolve(null);
    return this.#cancels.submit({ serverUuid, requestId });
  }

  markDeleted(serverUuids: readonly string[]): Promise<void> {
    return markDeleted(this.#pool, serverUuids);
  }

  stale(untouchedMs: number, limit: number): Promise<readonly RequestRecord[]> {
    return takeStale(this.#pool, untouchedMs, limit);
  }

  unarrived(cell: string, untouchedMs: number, limit: number): Promise<readonly RequestRecord[]> {
    return readUnarrived(this.#pool, cell, untouchedMs, limit);
  }

  markArrived(cell: string, serverUuids: readonly string[]): Promise<void> {
    return markArrived(this.#pool, cell, serverUuids);
  }

  takeLost(cell: string, serverUuids: readonly string[], untouchedMs: number): Promise<readonly string[]> {
    return takeLost(this.#pool, cell, serverUuids, untouchedMs);
  }

  async ping(): Promise<void> {
    await queryStored(this.#pool, { name: "ping", text: "select", values: [] });
  }

  async close(): Promise<void> {
    if (!this.#pool.ended) await this.#pool.end();
  }
}
