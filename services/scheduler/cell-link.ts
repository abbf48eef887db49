import { cellTasksSubject } from "../../adapters/nats/streams.ts";
import type { DeleteOutcome, Dispatch, DispatchOutcome } from "../../core/cell/cell-store.ts";
import type { LedgerView } from "../../core/ledger/view.ts";
import type { LiveCellFacts } from "../../core/scheduling/live-cell-facts.ts";
import { Task } from "../../proto/gen/berth/cell.ts";
import { Batcher, COMMIT_SPACING_MS } from "../../runtime/batcher.ts";
import type { Clock } from "../../runtime/clock.ts";
import { CellMoves } from "./cell-moves.ts";
import { ClaimsInFlight } from "./claims-in-flight.ts";
import type { SchedulerCell } from "./ports.ts";
import type { SchedulerSettings } from "./settings.ts";

/** One cell as this scheduler uses it: single calls that come together go as one batch. */
export class CellLink {
  readonly cell: SchedulerCell;
  readonly claims: ClaimsInFlight;
  /** An operator has closed it for new servers. */
  disabled = false;
  readonly #dispatches: Batcher<Dispatch, DispatchOutcome>;
  readonly #closes: Batcher<string, "closed" | "present">;
  readonly #deletes: Batcher<Task, DeleteOutcome>;
  /** Null: servers of this cell cannot be moved from here. */
  readonly moves: CellMoves | null;

  constructor(cell: SchedulerCell, clock: Clock, settings: Pick<SchedulerSettings, "batchMax" | "claimExpiryMs">) {
    const { store, operations, view, source } = cell;
    const maxItems = settings.batchMax;
    this.cell = cell;
    this.claims = new ClaimsInFlight({ view, source, clock, expiryMs: settings.claimExpiryMs });
    const spacingMs = COMMIT_SPACING_MS;
    this.#dispatches = new Batcher({
      run: (dispatches) => store.dispatch(dispatches),
      maxItems,
      concurrency: 2,
      spacingMs,
    });
    this.#closes = new Batcher({ run: (uuids) => store.close(uuids), maxItems });
    this.#deletes = new Batcher({ run: (tasks) => store.requestDelete(tasks), maxItems });
    this.moves = operations ? new CellMoves(operations, maxItems) : null;
  }

  get name(): string {
    return this.cell.name;
  }

  get view(): LedgerView {
    return this.cell.view;
  }

  /** Undefined: no host filter is asked. */
  get facts(): LiveCellFacts | undefined {
    return this.cell.facts;
  }

  /** The host weighs differently although nothing changed in the view. */
  touchHost(host: string): void {
    const root = this.view.hosts.slotOf(host);
    if (root >= 0) this.view.touch(root);
  }

  /** Whether new servers may go there now. */
  get isOpen(): boolean {
    return !this.disabled && this.cell.source.ready;
  }

  /** Rejects as the store does; then nobody knows whether it happened. */
  dispatch(dispatch: Dispatch): Promise<DispatchOutcome> {
    return this.#dispatches.submit(dispatch);
  }

  /** See DispatchStore.close. */
  shut(serverUuid: string): Promise<"closed" | "present"> {
    return this.#closes.submit(serverUuid);
  }

  requestDelete(task: Task): Promise<DeleteOutcome> {
    return this.#deletes.submit(task);
  }

  /** Those of the servers that are here, or were. */
  async known(serverUuids: readonly string[]): Promise<ReadonlySet<string>> {
    return new Set((await this.cell.store.homes(serverUuids)).map((home) => home.serverUuid));
  }

  /** Brings a stored task to the cell's conductors sooner than their own sweep would. */
  publish(task: Task, headers: Readonly<Record<string, string>>): Promise<void> {
    return this.cell.bus.publish(cellTasksSubject(this.name), Task.encode(task).finish(), { id: task.id, headers });
  }

  close(): void {
    this.claims.close();
  }
}
