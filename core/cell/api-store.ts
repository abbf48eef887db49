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
  /** The first call that asked to delete it, and when; null: none did. */
  readonly cancellation: { readonly requestId: string; readonly atMs: number } | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export interface AssignCell {
  readonly serverUuid: string;
  /** The cell that the request is assigned to as far as the caller knows; null: none yet. */
  readonly from: string | null;
  readonly to: string;
}

/** `moved`: another scheduler assigned it in the meantime, to `cell`. `ended`: cancelled, failed, deleted, or unknown. */
export type AssignOutcome =
  | { readonly kind: "assigned" }
  | { readonly kind: "moved"; readonly cell: string | null }
  | { readonly kind: "ended" };

export interface RequestFailure {
  readonly serverUuid: string;
  /** The cell that the request is assigned to as far as the caller knows; null: none yet. */
  readonly cell: string | null;
  readonly fault: string;
}

/** A page of requests: newest first, by (created_at desc, uuid) after the marker. */
export interface RequestQuery {
  /** Null: of all projects. */
  readonly projectId: string | null;
  /** Uuid of the last server of the page before; of a request in any state. An unknown one is followed by nothing. */
  readonly marker: string | null;
  readonly limit: number;
  readonly nameContains?: string;
  /** Inclusive. */
  readonly changedSinceMs?: number;
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

  /** Accept requests; from here on law 5 holds for them. Repeatable: a known uuid stays as it is. */
  accept(specs: readonly ServerSpec[]): Promise<void>;
  /** Those that are known, in the order of the uuids. */
  requests(serverUuids: readonly string[]): Promise<readonly RequestRecord[]>;
  /** Requests that are not `deleted` and not `cancelled`. */
  listRequests(query: RequestQuery): Promise<readonly RequestRecord[]>;
  /**
   * Assign each request to the one cell where it may be claimed from now on (state `dispatched`), if it is still where the
   * caller thinks.
   */
  assignCells(assignments: readonly AssignCell[]): Promise<readonly AssignOutcome[]>;
  /** Nowhere placed: state `failed` with the reason. Only from `accepted` or `dispatched`, and only if it is still at `cell`. */
  failRequests(failures: readonly RequestFailure[]): Promise<void>;
  /**
   * Stop placing it: `accepted` and `dispatched` become `cancelled`, `failed` becomes `deleted`. Returns the record as it
   * is afterwards, so that the caller sees which cell has to be told; null: unknown or gone. Repeatable until it is gone;
   * `cancellation` keeps the first call's `requestId`.
   */
  cancel(serverUuid: string, requestId: string): Promise<RequestRecord | null>;
  /**
   * What the cells have confirmed as gone. Only of `cancelled` ones: whoever deletes cancels first, and a cell's word alone must
   * not remove what lives in another.
   */
  markDeleted(serverUuids: readonly string[]): Promise<void>;
  /**
   * Requests in `accepted` or `cancelled` that nobody has touched for `untouchedMs`, oldest first: for the sweep that
   * finishes them. Handing one out touches it, so that of several sweeping at once only one gets it.
   */
  stale(untouchedMs: number, limit: number): Promise<readonly RequestRecord[]>;
  /**
   * Requests that have been assigned to `cell` and untouched for `untouchedMs`, and of which nobody has said that they
   * arrived there; oldest first. Does not touch them.
   */
  unarrived(cell: string, untouchedMs: number, limit: number): Promise<readonly RequestRecord[]>;
  /** The cell has them, or had: `unarrived` names them no more. Only those that are assigned to it. Touches nothing. */
  markArrived(cell: string, serverUuids: readonly string[]): Promise<void>;
  /**
   * Touches those that `unarrived` would still name, and returns their uuids in any order: of several sweeping at once only
   * one gets each.
   */
  takeLost(cell: string, serverUuids: readonly string[], untouchedMs: number): Promise<readonly string[]>;
  /** Resolves when the database answers. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
