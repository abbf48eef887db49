import type { Flavor, ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { UserChanges } from "../../tasks/user-changes.ts";
import type { ListPosition } from "../cell/listed-servers.ts";
import type { QuotaExcess, QuotaLimits, StatedLimits } from "./quota-limits.ts";

/** A cell as the API tier knows it. Its URLs contain passwords and are never logged or shown. */
export interface CellRecord {
  readonly name: string;
  readonly databaseUrl: string;
  /** The URL of the API tier's own user in the cell's NATS account, or null with the in-process bus. */
  readonly natsUrl: string | null;
  readonly disabled: boolean;
}

export interface FlavorRecord extends Flavor {
  readonly rxtxFactor: number;
  readonly isPublic: boolean;
  readonly description: string | null;
}

/** The place where a requested server is now, as far as the API tier knows. See the `requests` table. */
export type RequestState = "accepted" | "dispatched" | "failed" | "cancelled" | "deleted";

export interface RequestRecord {
  readonly serverUuid: string;
  readonly state: RequestState;
  readonly cell: string | null;
  /**
   * How often the request has gone from one cell to another. A cell that the request has left takes it again only under a higher number.
   */
  readonly assignment: number;
  /** The server as it was requested, with the `changes` applied. */
  readonly spec: ServerSpec;
  /** Null when nothing was changed, and the server was accepted without tags. */
  readonly changes: UserChanges | null;
  readonly fault: string | null;
  /** The first call that asked to delete the server, with its time. Null when no call did. */
  readonly cancellation: { readonly requestId: string; readonly atMs: number } | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** Whether the server is deleted softly (see SoftDeletionStore). */
  readonly softlyDeleted: boolean;
}

/** A request that a sweep takes. Its spec is read later, when there is memory for it. */
export type OpenRequest = Pick<RequestRecord, "serverUuid" | "state" | "cell">;

/** A request as a scheduler reads it to place it. */
export interface PlaceableRequest extends OpenRequest, Pick<RequestRecord, "assignment"> {
  /** Null when the spec is larger than the reader accepts. */
  readonly spec: ServerSpec | null;
  readonly specBytes: number;
  /** How often the request was put off. */
  readonly putOffs: number;
  /** How long ago the request was accepted, by the store's own clock. It is never compared with the clock of another machine. */
  readonly ageMs: number;
}

/** How many bytes of specs one read may bring into memory. */
export interface SpecLimits {
  /** A larger spec is not read at all. This limit is at most `pageBytesMax`. */
  readonly specBytesMax: number;
  /** Limits the sum of the specs in one answer. */
  readonly pageBytesMax: number;
}

export interface PutOff {
  readonly serverUuid: string;
  readonly delayMs: number;
}

/** Selects the requests that a sweep takes. */
export interface SweepQuery {
  /** Which of the requests that still need a host are taken in addition to the cancelled ones. The default is `all`. */
  readonly placing?: "all" | "put-off" | "none";
  /** Cells that cannot be reached. Requests that are assigned to them are not taken. */
  readonly exceptCells?: readonly string[];
}

/** The limits of one project's servers when requests are accepted. */
export interface AcceptLimits {
  /** Maximum number of requests of a project that are accepted and not yet assigned to a cell. Null means unlimited. */
  readonly openMax: number | null;
  /** The quotas of projects for which operators have set none. Null means that quotas are not looked at. */
  readonly quotas: QuotaLimits | null;
  /** The limits of the calls' projects as another service states them. They hold alone then; what operators have set here is not looked at. */
  readonly stated?: ReadonlyMap<string, StatedLimits> | undefined;
}

export type AcceptOutcome =
  | { readonly kind: "accepted" }
  /** No server of the call was accepted, because `open` requests of its project are already waiting. */
  | { readonly kind: "over-limit"; readonly open: number }
  /** No server of the call was accepted, because they would exceed a quota. */
  | { readonly kind: "over-quota"; readonly excess: QuotaExcess }
  /** No server of the call was accepted, because the UUID of one of them was closed: the call had not been accepted in its time. */
  | { readonly kind: "closed" };

export interface Deletion {
  /** The cell that reports the deletion, or null when the server was never assigned to a cell. */
  readonly cell: string | null;
  readonly serverUuid: string;
}

export interface AssignCell {
  readonly serverUuid: string;
  /** The cell to which the request is assigned as far as the caller knows, or null when it has none yet. */
  readonly from: string | null;
  /** The number of this assignment as far as the caller knows; 0 when it is absent. */
  readonly assignment?: number;
  readonly to: string;
  /** The number of the new assignment. Without it, a request that comes from another cell gets the next number, and others keep theirs. */
  readonly next?: number;
}

/**
 * `moved`: another scheduler has assigned the request to `cell` in the meantime. `ended`: the request is cancelled, failed, deleted or
 * unknown.
 */
export type AssignOutcome =
  | { readonly kind: "assigned" }
  | { readonly kind: "moved"; readonly cell: string | null; readonly assignment: number }
  | { readonly kind: "ended" };

export interface RequestFailure {
  readonly serverUuid: string;
  /** The cell to which the request is assigned as far as the caller knows, or null when it has none yet. */
  readonly cell: string | null;
  /** The number of this assignment as far as the caller knows; 0 when it is absent. */
  readonly assignment?: number;
  readonly fault: string;
}

/**
 * The orders of lists. The first one is (created_at desc, uuid), and the second one the same backwards. Servers with the same name are newest
 * first, whichever way the names are ordered.
 */
export type RequestOrder = "newest-first" | "oldest-first" | "by-name" | "by-name-backwards";

/** Selects a page of requests, which begins after the marker. */
export interface RequestQuery {
  /** Null selects the requests of all projects. */
  readonly projectId: string | null;
  /** Newest first by default. */
  readonly order?: RequestOrder;
  /** UUID of the last server of the previous page. Its request may be in any state. Nothing follows an unknown marker. */
  readonly marker: string | null;
  /** Only requests after this place, where there need be no request. Only in an order of creation, and without a marker. */
  readonly after?: ListPosition | null;
  readonly limit: number;
  readonly nameContains?: string;
  /** Only servers with all of these tags and with any of those, unless a list is empty. */
  readonly tags?: { readonly all: readonly string[]; readonly any: readonly string[] };
  /** Only locked servers. */
  readonly locked?: true;
  /** Only servers of which a user has changed a field of LISTED_CHANGES. */
  readonly changed?: true;
  /** Only servers whose names contain this word of ASCII letters in lower case and digits, in any case. */
  readonly hasWord?: string;
  /** Only servers whose host name is not simply the name in lower case (`isOddName`). */
  readonly oddlyNamed?: true;
  /** Only requests with a fault. With `open`, those and the open ones, at one moment: a request that fails meanwhile is among them, before and after. */
  readonly failed?: true;
  /** Only requests that are on their way to a cell, or have not been seen there yet. */
  readonly open?: true;
  /** Only requests that changed at this time or later. If more than `limit` did, any `limit` of them are returned. */
  readonly changedSinceMs?: number;
  /** The same for requests that last changed at this time or before. */
  readonly changedBeforeMs?: number;
}

/** The end is not part of it. */
export interface TimeRange {
  readonly fromMs: number;
  readonly beforeMs: number;
}

/** A stretch of the same list. The store examines `rows` requests after the marker and returns those that are listed. */
export interface RequestScan extends Pick<RequestQuery, "projectId" | "marker" | "after" | "order"> {
  /** Also counts cancelled requests, so that the work of one call is bounded. */
  readonly rows: number;
  /** Only requests of this time. */
  readonly created?: TimeRange;
  /** Only requests whose names contain a text. The store examines up to `rows` requests, until it has found `limit`. */
  readonly named?: { readonly contains: string; readonly limit: number };
}

export interface RequestStretch {
  readonly records: readonly RequestRecord[];
  /** The marker of the next stretch, or null when nothing follows. */
  readonly resumeAt: string | null;
}

/**
 * The API tier's database. Both implementations (Postgres, in-memory) pass test/contract/api-store. Batches behave as those of CellStore.
 */
export interface ApiStore {
  cells(): Promise<readonly CellRecord[]>;
  /** Adds the cell, or changes its URLs when it exists. */
  putCell(cell: CellRecord): Promise<void>;

  /** All flavors, by id, or with `creation` in the order in which they were created. */
  flavors(order?: "creation"): Promise<readonly FlavorRecord[]>;
  flavor(id: string): Promise<FlavorRecord | null>;
  createFlavor(flavor: FlavorRecord): Promise<"created" | "id-taken" | "name-taken">;
  deleteFlavor(id: string): Promise<boolean>;
  /** Returns false when there is no such flavor. */
  describeFlavor(id: string, description: string | null): Promise<boolean>;
  /** The projects that may use a flavor that is not public, sorted. Empty for an unknown flavor. */
  flavorProjects(flavorId: string): Promise<readonly string[]>;
  /** Ids of the flavors to which the project was given access. */
  flavorsOfProject(projectId: string): Promise<readonly string[]>;
  addFlavorProject(flavorId: string, projectId: string): Promise<"added" | "exists" | "unknown">;
  /** Returns false when the project has no such access. */
  removeFlavorProject(flavorId: string, projectId: string): Promise<boolean>;
  /** Replaces all extra specs in one step. `update` gets the current ones. Returns null when there is no such flavor. */
  updateExtraSpecs(
    flavorId: string,
    update: (extraSpecs: Readonly<Record<string, string>>) => Readonly<Record<string, string>>,
  ): Promise<Readonly<Record<string, string>> | null>;

  /** Accepts requests. From here on law 5 holds for them. Repeatable: a request whose UUID is known is not changed. */
  accept(specs: readonly ServerSpec[]): Promise<void>;
  /**
   * Accepts the servers of several calls, each call as a whole or not at all, within the limits, which hold even when several calls are
   * accepted at once. The calls are judged in their order, and the answers come in the same order. Repeatable. A UUID is closed if it has a request
   * of another project (`bareSpec` has none).
   */
  acceptWithin(calls: readonly (readonly ServerSpec[])[], limits: AcceptLimits): Promise<readonly AcceptOutcome[]>;
  /** Requests of the known servers, in the order of the UUIDs. Unknown servers are left out. */
  requests(serverUuids: readonly string[]): Promise<readonly RequestRecord[]>;
  /** The changes that users have made to these servers, by UUID. Servers without changes and unknown servers are left out. */
  changesOf(serverUuids: readonly string[]): Promise<ReadonlyMap<string, UserChanges>>;
  /** Lists requests that are neither `deleted` nor `cancelled`, and whose servers are not deleted softly. */
  listRequests(query: RequestQuery): Promise<readonly RequestRecord[]>;
  /**
   * Lists requests like `listRequests`, for a filter of the caller's that may match few of them. One call does a bounded amount of work, and the caller
   * continues at `resumeAt`.
   */
  scanRequests(scan: RequestScan): Promise<RequestStretch>;
  /**
   * Whether `listRequests` looks at less than one in a hundred requests to find those whose names contain the text. A store may estimate it.
   */
  isRareName(nameContains: string): Promise<boolean>;
  /**
   * Assigns each request to the only cell in which it may be claimed from now on (state `dispatched`), provided that the request is still
   * assigned as the caller believes, under the same number.
   */
  assignCells(assignments: readonly AssignCell[]): Promise<readonly AssignOutcome[]>;
  /**
   * Marks requests that found no host as `failed`, with the reason. Only an `accepted` or `dispatched` request that is still assigned to
   * `cell`, under the same number, changes.
   */
  failRequests(failures: readonly RequestFailure[]): Promise<void>;
  /**
   * Stops the placing of a request: `accepted` and `dispatched` become `cancelled`, and `failed` becomes `deleted`. Returns the changed
   * record, so that the caller sees which cell must be notified, or null when the server is unknown or deleted. The call can be repeated
   * until the request is deleted, and `cancellation` keeps the `requestId` of the first call.
   */
  cancel(serverUuid: string, requestId: string): Promise<RequestRecord | null>;
  /**
   * Changes a server in one step: `update` gets its record and returns all its changes from now on, or null to leave it. Returns the record
   * afterwards, or null for an unknown server. `update` does not throw. Lists find the server by its new name and tags at once.
   */
  changeServer(
    serverUuid: string,
    update: (current: RequestRecord) => UserChanges | null,
  ): Promise<RequestRecord | null>;
  /**
   * Marks requests as deleted when a cell has confirmed that the server is gone. Only `cancelled` requests change, since a delete cancels
   * first. A request that is assigned to another cell does not change, because one cell must not end what lives in another.
   */
  markDeleted(deletions: readonly Deletion[]): Promise<void>;
  /**
   * Reads these requests for placing, as many as fit into one page. `left` lists the UUIDs that remain to be read. Unknown requests are in
   * neither list. Each call answers for at least one known request.
   */
  placeable(
    serverUuids: readonly string[],
    limits: SpecLimits,
  ): Promise<{ readonly found: readonly PlaceableRequest[]; readonly left: readonly string[] }>;
  /**
   * Postpones the next sweep of these requests by their delays. Only changes requests that are accepted, or that are assigned to a cell and
   * not seen there yet.
   */
  putOff(putOffs: readonly PutOff[]): Promise<void>;
  /**
   * Requests that no scheduler is working on, the longest untouched first. These are `accepted` or `cancelled` ones that were not touched
   * for `untouchedMs`, and those whose put-off time has passed. Returning a request puts it off for `untouchedMs`, so that only one of
   * several concurrent sweeps gets it.
   */
  stale(untouchedMs: number, limit: number, query?: SweepQuery): Promise<readonly OpenRequest[]>;
  /**
   * Requests that were assigned to `cell`, have not been touched for `untouchedMs`, and have not been reported to have arrived there. The
   * oldest come first. The call does not touch them.
   */
  unarrived(cell: string, untouchedMs: number, limit: number): Promise<readonly OpenRequest[]>;
  /**
   * Records that the cell has or had these servers, so that `unarrived` omits them. Ignores requests that are not assigned to the cell. The
   * call does not touch the requests.
   */
  markArrived(cell: string, serverUuids: readonly string[]): Promise<void>;
  /**
   * Passes the requests that `unarrived` would still list to the next sweep (`stale`), and returns their UUIDs in any order. Of several
   * concurrent callers only one gets each request.
   */
  takeLost(cell: string, serverUuids: readonly string[], untouchedMs: number): Promise<readonly string[]>;
  /** Resolves when the database answers. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
