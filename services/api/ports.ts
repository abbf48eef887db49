import type { LedgerView } from "../../core/ledger/ledger-view.ts";
import type { LiveCellFacts } from "../../core/scheduling/live-cell-facts.ts";
import type { AggregateStore } from "../../core/stores/api/aggregate-store.ts";
import type { ApiStore } from "../../core/stores/api/api-store.ts";
import type { HostMapStore } from "../../core/stores/api/host-map-store.ts";
import type { RatioStore } from "../../core/stores/api/ratio-store.ts";
import type { ReservationStore } from "../../core/stores/api/reservation-store.ts";
import type { ServerGroupStore } from "../../core/stores/api/server-group-store.ts";
import type { SettingsStore } from "../../core/stores/api/settings-store.ts";
import type { HostStore, ServerStore } from "../../core/stores/cell/cell-store.ts";
import type { HostAdminStore } from "../../core/stores/cell/host-admin-store.ts";
import type { BeginStore, MigrationStore } from "../../core/stores/cell/operation-store.ts";
import type { PlugStore } from "../../core/stores/cell/plug-store.ts";
import type { ViewSource } from "../../core/stores/cell/view-source.ts";
import type { SoftState } from "../../core/stores/soft-state.ts";
import type { Bus } from "../../runtime/bus.ts";

/** The part of the API database that this service uses. */
export type RequestsPort = Pick<
  ApiStore,
  | "accept"
  | "acceptWithin"
  | "requests"
  | "changesOf"
  | "listRequests"
  | "scanRequests"
  | "isRareName"
  | "cancel"
  | "changeServer"
  | "markDeleted"
>;
export type FlavorsPort = Pick<
  ApiStore,
  | "flavors"
  | "flavor"
  | "createFlavor"
  | "deleteFlavor"
  | "updateExtraSpecs"
  | "describeFlavor"
  | "flavorProjects"
  | "flavorsOfProject"
  | "addFlavorProject"
  | "removeFlavorProject"
>;
export type ApiDatabasePort = RequestsPort & FlavorsPort & Pick<ApiStore, "ping">;

export type ServerGroupsPort = Pick<
  ServerGroupStore,
  "createGroup" | "groups" | "group" | "countGroups" | "deleteGroup" | "addMembers"
>;

/** The stores of the API tier with the operators' settings. */
export interface OperatorStores {
  readonly aggregates: AggregateStore;
  readonly ratios: RatioStore;
  readonly settings: SettingsStore;
  readonly hostMap: HostMapStore;
  readonly softState: Pick<SoftState, "buildFailures" | "clearBuildFailures" | "figuresOf" | "laws" | "living">;
}

export type ReservationsPort = Pick<ReservationStore, "reserve">;

/** The parts of a cell that this service uses. */
export interface CellPort {
  readonly name: string;
  readonly store: ServerStore &
    BeginStore &
    MigrationStore &
    Pick<HostStore, "residents"> &
    Pick<PlugStore, "notePlugged">;
  /** The operators' settings for the cell's hosts. Without it, this process cannot change these settings. */
  readonly admin?: HostAdminStore;
  /** The cell's bus, on which tasks are published, questions are asked and events arrive. */
  readonly bus: Pick<Bus, "publish" | "ask" | "consume" | "ensureStreams">;
  /** The cell's ledger view, which shows the capacity and use of hosts. Null when this process follows no view of the cell. */
  readonly view: LedgerView | null;
  /**
   * The facts that host filters and weighers read in addition to the view, and the source that tells whether both are up to date. Both serve `berth explain`.
   */
  readonly facts?: LiveCellFacts;
  readonly source?: Pick<ViewSource, "ready" | "waitUntilSeen" | "lagMs">;
}
