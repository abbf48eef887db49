import type { ApiStore } from "../../core/cell/api-store.ts";
import type { DispatchStore, HostStore, ServerStore } from "../../core/cell/cell-store.ts";
import type { MoveStore } from "../../core/cell/move-store.ts";
import type { BeginStore, MigrationStore } from "../../core/cell/operation-store.ts";
import type { ReservationStore } from "../../core/cell/reservation-store.ts";
import type { ServerGroupStore } from "../../core/cell/server-group-store.ts";
import type { LedgerView } from "../../core/ledger/view.ts";
import type { ViewSource } from "../../core/ledger/view-source.ts";
import type { LiveCellFacts } from "../../core/scheduling/live-cell-facts.ts";
import type { Bus } from "../../runtime/bus.ts";
import type { DispatchBatcher } from "./dispatch-batcher.ts";

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

/** What a scheduler needs of calls for several servers. */
export type SchedulerReservations = Pick<ReservationStore, "reservation" | "decide" | "purge">;

/** What a scheduler needs of accepted moves. */
export type SchedulerMoves = Pick<MoveStore, "moves" | "end" | "staleMoves" | "markAsked" | "giveUp" | "putOff">;

/** What a scheduler needs of server groups. */
export type SchedulerGroups = Pick<ServerGroupStore, "pinCell">;

/** The part of a cell's database that a scheduler uses. */
export type SchedulerCellStore = DispatchStore & Pick<ServerStore, "requestDelete"> & Pick<HostStore, "homes">;

/** And for servers that live there and are to move. */
export type SchedulerMoveStore = Pick<ServerStore, "servers"> &
  Pick<BeginStore, "begin" | "holdings"> &
  Pick<MigrationStore, "migrations">;

/** A cell, as far as a scheduler reaches into it. */
export interface SchedulerCell {
  readonly name: string;
  readonly store: SchedulerCellStore;
  /** Of the process, where several schedulers share one; each has its own unless given. */
  readonly dispatches?: DispatchBatcher;
  /** Without it no server of the cell is moved. */
  readonly operations?: SchedulerMoveStore;
  /** The cell's own bus: tasks go down there, events come up. */
  readonly bus: SchedulerBus;
  readonly view: LedgerView;
  /** What host filters and weighers look at beside the view; without it no host filter is asked. */
  readonly facts?: LiveCellFacts;
  readonly source: ViewSource;
}

/** A cell that the scheduler had opened itself, and has to close. */
export interface OpenedCell extends SchedulerCell {
  close(): Promise<void>;
}

/** What a scheduler does with a bus, the API tier's own or a cell's. */
export type SchedulerBus = Pick<Bus, "publish" | "consume" | "ensureStreams" | "streamState">;
