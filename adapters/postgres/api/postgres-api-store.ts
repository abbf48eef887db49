import type { Pool } from "pg";
import type {
  AcceptLimits,
  AcceptOutcome,
  ApiStore,
  AssignCell,
  AssignOutcome,
  CellRecord,
  Deletion,
  FlavorRecord,
  OpenRequest,
  PlaceableRequest,
  PutOff,
  RequestFailure,
  RequestQuery,
  RequestRecord,
  RequestScan,
  RequestStretch,
  SpecLimits,
  SweepQuery,
} from "../../../core/stores/api/api-store.ts";
import type { UserChanges } from "../../../core/tasks/user-changes.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { Batcher, COMMIT_SPACING_MS } from "../../../runtime/batcher.ts";
import { endPool } from "../client/end-pool.ts";
import { onlyUuids, queryStored } from "../client/store-query.ts";
import { acceptRequests, acceptWithinLimits } from "./accept-requests.ts";
import { markArrived, readUnarrived, takeLost } from "./arrivals.ts";
import { putCell, readCells } from "./cells.ts";
import { changeServer } from "./change-server.ts";
import {
  deleteFlavorProject,
  insertFlavorProject,
  readFlavorProjects,
  readFlavorsOfProject,
} from "./flavor-projects.ts";
import { deleteFlavor, describeFlavor, insertFlavor, readFlavor, readFlavors, updateExtraSpecs } from "./flavors.ts";
import { isRareName, listRequests } from "./list-requests.ts";
import { readPlaceable } from "./read-placeable.ts";
import { readChanges, readRequests } from "./read-requests.ts";
import { scanRequests } from "./scan-requests.ts";
import { putOff, takeStale } from "./sweep-requests.ts";
import { assignCells, type Cancellation, cancelRequests, failRequests, markDeleted } from "./write-requests.ts";

/**
 * The API tier's database in Postgres. Every write is one statement and one transaction. Elements of a batch that name the same request go
 * in transactions of their own, in their order. All times except `created_at` are the database's. Throws `StoreError`; a call that was
 * `unavailable` may be repeated.
 */
export class PostgresApiStore implements ApiStore {
  readonly #pool: Pool;
  /** Deletes arrive one by one, and each would be a commit. */
  readonly #cancels: Batcher<Cancellation, RequestRecord | null>;

  /** The store takes over the pool: `close` ends it. */
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

  flavors(order?: "creation"): Promise<readonly FlavorRecord[]> {
    return readFlavors(this.#pool, order);
  }

  flavor(id: string): Promise<FlavorRecord | null> {
    return readFlavor(this.#pool, id);
  }

  createFlavor(flavor: FlavorRecord): Promise<"created" | "id-taken" | "name-taken"> {
    return insertFlavor(this.#pool, flavor);
  }

  deleteFlavor(id: string): Promise<boolean> {
    return deleteFlavor(this.#pool, id);
  }

  describeFlavor(id: string, description: string | null): Promise<boolean> {
    return describeFlavor(this.#pool, id, description);
  }

  flavorProjects(flavorId: string): Promise<readonly string[]> {
    return readFlavorProjects(this.#pool, flavorId);
  }

  flavorsOfProject(projectId: string): Promise<readonly string[]> {
    return readFlavorsOfProject(this.#pool, projectId);
  }

  addFlavorProject(flavorId: string, projectId: string): Promise<"added" | "exists" | "unknown"> {
    return insertFlavorProject(this.#pool, flavorId, projectId);
  }

  removeFlavorProject(flavorId: string, projectId: string): Promise<boolean> {
    return deleteFlavorProject(this.#pool, flavorId, projectId);
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

  acceptWithin(calls: readonly (readonly ServerSpec[])[], limits: AcceptLimits): Promise<readonly AcceptOutcome[]> {
    return acceptWithinLimits(this.#pool, calls, limits);
  }

  requests(serverUuids: readonly string[]): Promise<readonly RequestRecord[]> {
    return readRequests(this.#pool, serverUuids);
  }

  changesOf(serverUuids: readonly string[]): Promise<ReadonlyMap<string, UserChanges>> {
    return readChanges(this.#pool, serverUuids);
  }

  listRequests(query: RequestQuery): Promise<readonly RequestRecord[]> {
    return listRequests(this.#pool, query);
  }

  scanRequests(scan: RequestScan): Promise<RequestStretch> {
    return scanRequests(this.#pool, scan);
  }

  isRareName(nameContains: string): Promise<boolean> {
    return isRareName(this.#pool, nameContains);
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

  changeServer(
    serverUuid: string,
    update: (current: RequestRecord) => UserChanges | null,
  ): Promise<RequestRecord | null> {
    return changeServer(this.#pool, serverUuid, update);
  }

  markDeleted(deletions: readonly Deletion[]): Promise<void> {
    return markDeleted(this.#pool, deletions);
  }

  placeable(
    serverUuids: readonly string[],
    limits: SpecLimits,
  ): Promise<{ readonly found: readonly PlaceableRequest[]; readonly left: readonly string[] }> {
    return readPlaceable(this.#pool, serverUuids, limits);
  }

  putOff(putOffs: readonly PutOff[]): Promise<void> {
    return putOff(this.#pool, putOffs);
  }

  stale(untouchedMs: number, limit: number, query?: SweepQuery): Promise<readonly OpenRequest[]> {
    return takeStale(this.#pool, untouchedMs, limit, query);
  }

  unarrived(cell: string, untouchedMs: number, limit: number): Promise<readonly OpenRequest[]> {
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
    await endPool(this.#pool);
  }
}
