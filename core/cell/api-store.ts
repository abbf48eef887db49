import type { Flavor, ServerSpec } from "../../proto/gen/berth/shared.ts";

/** A cell as the API tier knows it. The URLs hold passwords: never logged, never shown. */
export interface CellRecord {
  readonly name: string;
  readonly databaseUrl: string;
  /** The API tier's own user in the cell's NATS account; null with the in-process bus. */
  readonly natsUrl: string | null;
  readonly disabled: boolean;
}

export interface FlavorRecord extends Flavor {
  readonly rxtxFactor: number;
  readonly isPublic: boolean;
  readonly description: string | null;
}

/** See the `requests` table: where a server that was asked for is now, as far as the API tier knows. */
export type RequestState = "accepted" | "dispatched" | "failed" | "cancelled" | "deleted";

export interface RequestRecord {
  readonly serverUuid: string;
  readonly state: RequestState;
  readonly cell: string | null;
  readonly spec: ServerSpec;
  readonly fault: string | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export interface AssignCell {
  readonly serverUuid: string;
  /** The cell that the request is assigned to as far as the caller knows; null: none yet. */
  readonly from: string | null;
  readonly to: string;
}

/** The API tier's database. Both bodies (Postgres, in-memory) pass test/contract/api-store. Batches as in CellStore. */
export interface ApiStore {
  cells(): Promise<readonly CellRecord[]>;
  /** Adds the cell or changes its URLs. */
  putCell(cell: CellRecord): Promise<void>;

  flavors(): Promise<readonly FlavorRecord[]>;
  flavor(id: string): Promise<FlavorRecord | null>;
  createFlavor(flavor: FlavorRecord): Promise<"created" | "id-taken" | "name-taken">;
  deleteFlavor(id: string): Promise<boolean>;
  /** Replaces all extra specs in one step; `update` gets what is there now. Null: no such flavor. */
  updateExtraSpecs(
    flavorId: string,
    update: (extraSpecs: Readonly<Record<string, string>>) => Readonly<Record<string, string>>,
  ): Promise<Readonly<Record<string, string>> | null>;

  /** Accept requests; from here on law 5 holds for them. */
  accept(specs: readonly ServerSpec[]): Promise<void>;
  requests(serverUuids: readonly string[]): Promise<readonly RequestRecord[]>;
  /**
   * Newest first, not `deleted`, not `cancelled`; by (created_at desc, uuid) after the marker. `projectId` null: of all
   * projects.
   */
  listRequests(query: {
    readonly projectId: string | null;
    readonly marker: string | null;
    readonly limit: number;
    readonly nameContains?: string;
    readonly changedSinceMs?: number;
  }): Promise<readonly RequestRecord[]>;
  /**
   * Assign each request to the one cell where it may be claimed from now on (state `dispatched`), if it is still where the
   * caller thinks. `moved`: another scheduler assigned it, `cell` says where. `ended`: cancelled, failed or deleted.
   */
  assignCells(
    assignments: readonly AssignCell[],
  ): Promise<readonly ({ readonly kind: "assigned" } | { readonly kind: "moved"; readonly cell: string | null } | { readonly kind: "ended" })[]>;
  /** Nowhere placed: state `failed` with the reason. Only from `accepted`, or from `dispatched` to exactly `cell`. */
  failRequests(failures: readonly { readonly serverUuid: string; readonly cell: string | null; readonly fault: string }[]): Promise<void>;
  /**
   * Stop placing it: `accepted` and `dispatched` become `cancelled`, `failed` becomes `deleted`. Returns the record as it
   * is afterwards, so that the caller sees which cell has to be told; null: unknown or gone.
   */
  cancel(serverUuid: string): Promise<RequestRecord | null>;
  /** What the cells have confirmed as gone. */
  markDeleted(serverUuids: readonly string[]): Promise<void>;
  /** Requests in `accepted` or `cancelled` that nobody has touched for `untouchedMs`: for the sweep that finishes them. */
  stale(untouchedMs: number, limit: number): Promise<readonly RequestRecord[]>;
  ping(): Promise<void>;
  close(): Promise<void>;
}
