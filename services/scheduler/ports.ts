import type { LedgerView } from "../../core/ledger/ledger-view.ts";
import type { LiveCellFacts } from "../../core/scheduling/live-cell-facts.ts";
import type { ApiStore } from "../../core/stores/api/api-store.ts";
import type { MoveStore } from "../../core/stores/api/move-store.ts";
import type { ReservationStore } from "../../core/stores/api/reservation-store.ts";
import type { ServerGroupStore } from "../../core/stores/api/server-group-store.ts";
import type { DispatchStore, HostStore, ServerStore } from "../../core/stores/cell/cell-store.ts";
import type { BeginStore, MigrationStore } from "../../core/stores/cell/operation-store.ts";
import type { ViewSource } from "../../core/stores/cell/view-source.ts";
import type { Bus } from "../../runtime/bus.ts";
import type { DispatchBatcher } from "./cells/dispatch-batcher.ts";

/** The part of the API database that a scheduler uses. */
export type SchedulerStore = Pick<
  ApiStore,
  | "cells"
  | "requests"
  | "assignCells"
  | "failRequests"
  | "placeable"
  | "putOff"
  | "stale"
  | "markDeleted"
  | "unarrived"
  | "markArrived"
  | "takeLost"
>;

/** The operations on calls for several servers that a scheduler uses. */
export type SchedulerReservations = Pick<ReservationStore, "reservation" | "decide" | "purge">;

/** The operations on accepted moves that a scheduler uses. */
export type SchedulerMoves = Pick<MoveStore, "moves" | "end" | "staleMoves" | "markAsked" | "giveUp" | "putOff">;

/** The operations on server groups that a scheduler uses. */
export type SchedulerGroups = Pick<ServerGroupStore, "pinCell">;

/** The part of a cell's database that a scheduler uses. */
export type SchedulerCellStore = DispatchStore & Pick<ServerStore, "requestDelete"> & Pick<HostStore, "homes">;

/** The part of a cell's database that a scheduler uses to move servers of the cell. */
export type SchedulerMoveStore = Pick<ServerStore, "servers"> &
  Pick<BeginStore, "begin" | "holdings"> &
  Pick<MigrationStore, "migrations">;

/** The parts of a cell that a scheduler uses. */
export interface SchedulerCell {
  readonly name: string;
  readonly store: SchedulerCellStore;
  /** Shared by the schedulers of one process. Each scheduler creates one for itself when this is missing. */
  readonly dispatches?: DispatchBatcher;
  /** Without it, no server of the cell is moved. */
  readonly operations?: SchedulerMoveStore;
  /** The cell's bus, on which tasks are published and events arrive. */
  readonly bus: SchedulerBus;
  readonly view: LedgerView;
  /** The host facts, which host filters and weighers read beside the view. Without them, host filters are skipped. */
  readonly facts?: LiveCellFacts;
  readonly source: ViewSource;
}

/** A cell that the scheduler opened and has to close. */
export interface OpenedCell extends SchedulerCell {
  close(): Promise<void>;
}

/** The operations of a bus that a scheduler uses, on the API tier's bus or on a cell's. */
export type SchedulerBus = Pick<Bus, "publish" | "consume" | "ensureStreams" | "streamState">;
