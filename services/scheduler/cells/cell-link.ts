import { TaskAnnouncer } from "../../../adapters/nats/task-announcer.ts";
import type { LedgerView } from "../../../core/ledger/ledger-view.ts";
import type { LiveCellFacts } from "../../../core/scheduling/live-cell-facts.ts";
import type {
  CloseOutcome,
  Closing,
  DeleteOutcome,
  Dispatch,
  DispatchOutcome,
} from "../../../core/stores/cell/cell-store.ts";
import type { Task } from "../../../proto/gen/berth/cell.ts";
import { Batcher } from "../../../runtime/batcher.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { withDeadline } from "../../../runtime/deadline.ts";
import type { SchedulerCell } from "../ports.ts";
import type { SchedulerSettings } from "../settings.ts";
import { CellMoves } from "./cell-moves.ts";
import { ClaimsInFlight } from "./claims-in-flight.ts";
import { createDispatchBatcher, type DispatchBatcher } from "./dispatch-batcher.ts";

/** One cell as this scheduler uses it. Single calls that are made at about the same time go to the cell's store as one batch. */
export class CellLink {
  readonly cell: SchedulerCell;
  readonly claims: ClaimsInFlight;
  /** True while an operator has closed the cell for new servers. */
  disabled = false;
  readonly #announcer: TaskAnnouncer;
  readonly #dispatches: DispatchBatcher;
  readonly #closes: Batcher<Closing, CloseOutcome>;
  readonly #deletes: Batcher<Task, DeleteOutcome>;
  /** Null when this scheduler cannot move servers of this cell. */
  readonly moves: CellMoves | null;
  readonly #clock: Clock;
  readonly #silentMs: number;
  readonly #answerMs: number;
  readonly #avoidMs: number;
  /**
   * Number of calls that the cell's store has not answered yet. The next field is the time of the last answer, or of the first of these
   * calls if that is later.
   */
  #unanswered = 0;
  #quietSinceMs = 0;
  /** Why the cell's database last refused to write a dispatch, and when the next one may be tried. Null since it has written one. */
  #refusal: { readonly why: string; readonly untilMs: number } | null = null;

  constructor(
    cell: SchedulerCell,
    clock: Clock,
    settings: Pick<SchedulerSettings, "batchMax" | "claimExpiryMs" | "cellSilentMs" | "cellAnswerMs" | "cellRefusedMs">,
  ) {
    const { store, operations, view, source } = cell;
    const maxItems = settings.batchMax;
    this.cell = cell;
    this.#clock = clock;
    this.#silentMs = settings.cellSilentMs;
    this.#answerMs = settings.cellAnswerMs;
    this.#avoidMs = settings.cellRefusedMs;
    this.claims = new ClaimsInFlight({ view, source, clock, expiryMs: settings.claimExpiryMs });
    this.#dispatches = cell.dispatches ?? createDispatchBatcher(store, maxItems);
    this.#announcer = new TaskAnnouncer(cell.bus, cell.name);
    this.#closes = new Batcher({ run: (closings) => store.close(closings), maxItems });
    this.#deletes = new Batcher({ run: (tasks) => store.requestDelete(tasks), maxItems });
    this.moves = operations ? new CellMoves(operations, maxItems, (call) => this.#listen(call)) : null;
  }

  get name(): string {
    return this.cell.name;
  }

  get view(): LedgerView {
    return this.cell.view;
  }

  /** Undefined when the cell has no host facts; host filters are skipped then. */
  get facts(): LiveCellFacts | undefined {
    return this.cell.facts;
  }

  /** Has the host weighed again when something outside the ledger view, such as its build failures, has changed. */
  touchHost(host: string): void {
    const root = this.view.hosts.slotOf(host);
    if (root >= 0) this.view.touch(root);
  }

  /** Whether new servers may be placed in the cell now. */
  get isOpen(): boolean {
    return !this.disabled && this.answers && this.refusesWrites === null;
  }

  /**
   * Why the cell's database refuses to write, if it has refused a dispatch lately, for example because its disk is full. Such a cell still
   * answers, and what it has is still reached, but nothing new is sent there for a while.
   */
  get refusesWrites(): string | null {
    const refusal = this.#refusal;
    return refusal !== null && this.#clock.monotonic() < refusal.untilMs ? refusal.why : null;
  }

  /**
   * Whether the cell can be reached, as far as this scheduler knows. A cell that is cut off says nothing, and its view looks as complete as
   * before. Whatever is sent to such a cell has to wait, so nothing more is sent until the cell has answered or refused a call.
   */
  get answers(): boolean {
    const isSilent = this.#unanswered > 0 && this.#clock.monotonic() - this.#quietSinceMs >= this.#silentMs;
    return this.cell.source.ready && !isSilent;
  }

  /** Rejects as the store does. The dispatch may then have happened or not. */
  async dispatch(dispatch: Dispatch): Promise<DispatchOutcome> {
    const outcome = await this.#listen(this.#dispatches.submit(dispatch));
    if (outcome.kind === "write-refused")
      this.#refusal = { why: outcome.why, untilMs: this.#clock.monotonic() + this.#avoidMs };
    else if (outcome.kind === "dispatched") this.#refusal = null;
    return outcome;
  }

  /** Refuses every later dispatch of this server to the cell under this assignment; see DispatchStore.close. */
  shut(closing: Closing): Promise<CloseOutcome> {
    return this.#listen(this.#closes.submit(closing));
  }

  /** See ServerStore.requestDelete. Rejects as `dispatch` does. */
  requestDelete(task: Task): Promise<DeleteOutcome> {
    return this.#listen(this.#deletes.submit(task));
  }

  /** Returns those of the given servers that are or were in this cell. */
  async known(serverUuids: readonly string[]): Promise<ReadonlySet<string>> {
    const homes = await this.#listen(this.cell.store.homes(serverUuids));
    return new Set(homes.map((home) => home.serverUuid));
  }

  /** Brings a stored task to the cell's conductors sooner than their own sweep would. */
  publish(task: Task, headers: Readonly<Record<string, string>>): Promise<void> {
    return this.#announcer.announce(task, headers);
  }

  close(): void {
    this.claims.close();
  }

  /**
   * Rejects when the cell does not answer in time, so that requests that wait for this cell do not take the places of requests for other
   * cells. The call itself continues, and the cell counts as silent until the call has ended.
   */
  #listen<Answer>(call: Promise<Answer>): Promise<Answer> {
    if (this.#unanswered === 0) this.#quietSinceMs = this.#clock.monotonic();
    this.#unanswered += 1;
    const answered = call.finally(() => {
      this.#unanswered -= 1;
      this.#quietSinceMs = this.#clock.monotonic();
    });
    return withDeadline(answered, this.#answerMs, `a call of cell ${this.name}`, this.#clock);
  }
}
