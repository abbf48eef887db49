import type { AggregateStore } from "../../core/cell/aggregate-store.ts";
import type { ApiStore } from "../../core/cell/api-store.ts";
import type { ServerStore } from "../../core/cell/cell-store.ts";
import type { HostAdminStore } from "../../core/cell/host-admin-store.ts";
import type { HostMapStore } from "../../core/cell/host-map-store.ts";
import type { BeginStore, MigrationStore } from "../../core/cell/operation-store.ts";
import type { RatioStore } from "../../core/cell/ratio-store.ts";
import type { ReservationStore } from "../../core/cell/reservation-store.ts";
import type { ServerGroupStore } from "../../core/cell/server-group-store.ts";
import type { SettingsStore } from "../../core/cell/settings-store.ts";
import type { LedgerView } from "../../core/ledger/view.ts";
import type { ViewSource } from "../../core/ledger/view-source.ts";
import type { LiveCellFacts } from "../../core/scheduling/live-cell-facts.ts";
import type { SoftState } from "../../core/scheduling/soft-state.ts";
import type { Bus } from "../../runtime/bus.ts";

/** The part of the API database that this service uses. */
export type RequestsPort = Pick<
  ApiStore,
  "accept" | "acceptWithin" | "requests" | "listRequests" | "scanRequests" | "cancel" | "markDeleted"
>;
export type FlavorsPort = Pick<ApiStore, "flavors" | "flavor" | "createFlavor" | "deleteFlavor" | "updateExtraSpecs">;
export type ApiDatabasePort = RequestsPort & FlavorsPort & Pick<ApiStore, "ping">;

export type ServerGroupsPort = Pick<
  ServerGroupStore,
  "createGroup" | "groups" | "group" | "deleteGroup" | "addMembers"
>;

/** What operators set, in the API tier. */
export interface OperatorStores {
  readonly aggregates: AggregateStore;
  readonly ratios: RatioStore;
  readonly settings: SettingsStore;
  readonly hostMap: HostMapStore;
  readonly softState: Pick<SoftState, "buildFailures" | "clearBuildFailures" | "living">;
}

export type ReservationsPort = Pick<ReservationStore, "reserve">;

/** A cell, as far as this service reaches into it. */
export interface CellPort {
  readonly name: string;
  readonly store: ServerStore & BeginStore & MigrationStore;
  /** What operators say of its hosts; without it this process cannot be asked to change them. */
  readonly admin?: HostAdminStore;
  /** The cell's own bus: its tasks go down there, its events come up. */
  readonly bus: Pick<Bus, "publish" | "consume" | "ensureStreams">;
  /** The cell's ledger view, for what hosts offer and have in use; null: this process follows none. */
  readonly view: LedgerView | null;
  /** What host filters and weighers look at beside the view, and whether both are up to date, for `berth explain`. */
  readonly facts?: LiveCellFacts;
  readonly source?: Pick<ViewSource, "ready" | "waitUntilSeen">;
}
