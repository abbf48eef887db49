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

/** A request that a sweep takes. Its spec is read later, when there is room for it. */
export type OpenRequest = Pick<RequestRecord, "serverUuid" | "state" | "cell">;

/** A request as a scheduler reads it to place it. */
export interface PlaceableRequest extends OpenRequest {
  /** Null: it is larger than the reader takes. */
  readonly spec: ServerSpec | null;
  readonly specBytes: number;
  /** How often it was put off. */
  readonly putOffs: number;
  /** How long ago it was accepted, by the store's own clock: clocks of other machines are never compared with it. */
  readonly ageMs: number;
}

/** How much one read of specs may bring into memory. */
export interface SpecLimits {
  /** A larger spec is not read at all. At most `pageBytesMax`. */
  readonly specBytesMax: number;
  /** The sum of the specs of one answer. */
  readonly pageBytesMax: number;
}

export interface PutOff {
  readonly serverUuid: string;
  readonly delayMs: number;
}

/** Which requests a sweep takes. */
export interface SweepQuery {
  /** Which of those that are to be placed, beside the cancelled ones; all unless given. */
  readonly placing?: "all" | "put-off" | "none";
  /** Cells that cannot be reached: what is assigned to them stays where it is. */
  readonly exceptCells?: readonly string[];
}

/** `over-limit`: nothing of the call was accepted; so many requests of its project wait already. */
export type AcceptOutcome = { readonly kind: "accepted" } | { readonly kind: "over-limit"; readonly open: number };

export interface Deletion {
  /** The cell that says so; null: the server was never assigned to a cell. */
  readonly cell: string | null;
  readonly serverUuid: string;
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

/** A stretch of the same list: `rows` requests after the marker are looked at, and those with the name come back. */
export interface RequestScan extends Pick<RequestQuery, "projectId" | "marker" | "nameContains"> {
  /** Counts those that are cancelled, or of another name, too: so the work of one call is bounded. */
  readonly rows: number;
}

export interface RequestStretch {
  readonly records: readonly RequestRecord[];
  /** The marker of the next stretch; null: nothing follows. */
  readonly resumeAt: string | null;
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
  /**
   * The same for the servers of several calls, each call as a whole or not at all: a project may have at most `openMax` requests that are
   * accepted and not assigned to a cell yet, also when several accept at once. Answers in the order of the calls.
   */
  acceptWithin(calls: readonly (readonly ServerSpec[])[], openMax: number): Promise<readonly AcceptOutcome[]>;
  /** Those that are known, in the order of the uuids. */
  requests(serverUuids: readonly string[]): Promise<readonly RequestRecord[]>;
  /** Requests that are not `deleted` and not `cancelled`. */
  listRequests(query: RequestQuery): Promise<readonly RequestRecord[]>;
  /** The same for a filter that few requests may pass: one call does bounded work, and its caller goes on where it ended. */
  scanRequests(scan: RequestScan): Promise<RequestStretch>;
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
   * Marks requests as deleted that cells have confirmed as gone. Only `cancelled` requests change (a delete cancels first), and only those
   * of the cell that says so or of none: one cell's word must not end what lives in another.
   */
  markDeleted(deletions: readonly Deletion[]): Promise<void>;
  /**
   * What is needed to place these requests, for those that fit into one page; `left` are the uuids that are still to be read. Unknown
   * ones are in neither. Always answers for one known request at least.
   */
  placeable(
    serverUuids: readonly string[],
    limits: SpecLimits,
  ): Promise<{ readonly found: readonly PlaceableRequest[]; readonly left: readonly string[] }>;
  /** A sweep takes them after their delays, and not earlier. Only of those that are accepted, or assigned to a cell and not seen there yet. */
  putOff(putOffs: readonly PutOff[]): Promise<void>;
  /**
   * Requests that nobody works on, the longest untouched first: `accepted` or `cancelled` ones untouched for `untouchedMs`, and those that
   * were put off until now. Handing one out puts it off for `untouchedMs`, so that of several sweeping at once only one gets it.
   */
  stale(untouchedMs: number, limit: number, query?: SweepQuery): Promise<readonly OpenRequest[]>;
  /**
   * Requests that have been assigned to `cell` and untouched for `untouchedMs`, and of which nobody has said that they
   * arrived there; oldest first. Does not touch them.
   */
  unarrived(cell: string, untouchedMs: number, limit: number): Promise<readonly OpenRequest[]>;
  /** The cell has them, or had: `unarrived` names them no more. Only those that are assigned to it. Touches nothing. */
  markArrived(cell: string, serverUuids: readonly string[]): Promise<void>;
  /**
   * Hands those that `unarrived` would still name to the next sweep (`stale`), and returns their uuids in any order: of several callers at
   * once only one gets each.
   */
  takeLost(cell: string, serverUuids: readonly string[], untouchedMs: number): Promise<readonly string[]>;
  /** Resolves when the database answers. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
