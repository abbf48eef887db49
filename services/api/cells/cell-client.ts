import { cellConsolesSubject } from "../../../adapters/nats/streams.ts";
import { TaskAnnouncer } from "../../../adapters/nats/task-announcer.ts";
import type { Holding } from "../../../core/ledger/holding.ts";
import type {
  ChangedServers,
  ChangesQuery,
  DeleteOutcome,
  PeriodQuery,
  PeriodStretch,
} from "../../../core/stores/cell/cell-store.ts";
import type { AdminHost, HostAdminStore } from "../../../core/stores/cell/host-admin-store.ts";
import type { BeginOutcome } from "../../../core/stores/cell/operation-store.ts";
import { StoreError } from "../../../core/stores/store-error.ts";
import type { BeginOperation } from "../../../core/tasks/operation-step.ts";
import type { Attempt, Host, Server } from "../../../core/tasks/server.ts";
import { ConsoleAnswer, ConsoleQuestion, type Task } from "../../../proto/gen/berth/cell.ts";
import type { AllocationRequest } from "../../../proto/gen/berth/shared.ts";
import { Batcher, COMMIT_SPACING_MS } from "../../../runtime/batcher.ts";
import { BusError } from "../../../runtime/bus.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../../runtime/deadline.ts";
import { encodeMessage } from "../../../runtime/encode-message.ts";
import type { ApiEvents } from "../events.ts";
import type { CellPort } from "../ports.ts";
import type { CellSettings } from "../settings.ts";

/** The answer of a cell, or `unreachable` when it did not answer in time or has just failed to answer another question. */
export type CellAnswer<Value> = { readonly kind: "answer"; readonly value: Value } | { readonly kind: "unreachable" };

/** An answer about a console. `output` and `opened` answer different questions. */
export type ConsoleReply = Exclude<ConsoleAnswer["answer"], undefined | { $case: "away" }>;

/** How long a conductor may take to read a console, and how many conductors are asked. */
const CONSOLE_MS = 5_000;
/** The same for a change of a guest's interfaces: a guest may need some seconds to release one. */
const INTERFACES_MS = 20_000;
const CONSOLE_ASKS_MAX = 3;
/** Factor by which questions about all hosts may take longer than users' questions. */
const ADMIN_PATIENCE = 5;
/** The shares of the deadline that a question about changes may wait for others, and then take. Together they are less than the deadline. */
const CHANGES_WAIT = 0.3;
const CHANGES_TAKE = 0.6;
const CHANGES_AT_A_TIME = 4;

/**
 * Sends the api's questions to one cell. Single questions that arrive together go as one query, each with a deadline.
 *
 * It has two modes: reachable, and shut. A question that failed or came too late shuts the cell for `retryMs`. Questions in this time get
 * `unreachable` at once, so that a dead cell costs a list one deadline and not one per request. The first question after that time opens
 * the cell again, or shuts it for another `retryMs`. A question that was slow by itself does not shut the cell for others: the cell stays open when it has
 * answered a later question meanwhile, and otherwise opens again as soon as it answers a small one. Nor does one that the database refused, which is a fault of this
 * question alone.
 */
export class CellClient {
  readonly name: string;
  readonly #cell: CellPort;
  readonly #clock: Clock;
  readonly #events: ApiEvents;
  readonly #settings: Pick<CellSettings, "deadlineMs" | "retryMs">;
  readonly #announcer: TaskAnnouncer;
  readonly #reads: Batcher<string, Server | null>;
  readonly #deletes: Batcher<Task, DeleteOutcome>;
  readonly #begins: Batcher<BeginOperation, BeginOutcome>;
  readonly #holdings: Batcher<string, Holding | null>;
  readonly #claims: Batcher<string, AllocationRequest | null>;
  readonly #changes: Batcher<{ readonly query: ChangesQuery; readonly dueMs: number }, ChangedServers>;
  /** When the cell was asked the latest question that it has answered. */
  #answeredMs = Number.NEGATIVE_INFINITY;
  #shutUntilMs = Number.NEGATIVE_INFINITY;

  constructor(
    cell: CellPort,
    deps: { readonly clock: Clock; readonly events: ApiEvents },
    settings: Pick<CellSettings, "deadlineMs" | "retryMs">,
  ) {
    this.name = cell.name;
    this.#cell = cell;
    this.#clock = deps.clock;
    this.#events = deps.events;
    deps.events.cellKnown(cell.name);
    this.#settings = settings;
    this.#announcer = new TaskAnnouncer(cell.bus, cell.name);
    this.#reads = new Batcher({ run: (uuids) => this.#readServers(uuids), maxItems: 1000, concurrency: 4 });
    this.#begins = new Batcher({
      run: (begins) => cell.store.begin(begins),
      maxItems: 200,
      spacingMs: COMMIT_SPACING_MS,
    });
    this.#holdings = new Batcher({ run: (uuids) => cell.store.holdings(uuids), maxItems: 1000 });
    this.#claims = new Batcher({ run: (attemptIds) => cell.store.claimed(attemptIds), maxItems: 1000 });
    this.#changes = new Batcher({
      run: async ([asked]) => [
        this.#clock.monotonic() > asked!.dueMs ? { kind: "too-slow" } : await cell.store.serversChanged(asked!.query),
      ],
      maxItems: 1,
      concurrency: CHANGES_AT_A_TIME,
    });
    this.#deletes = new Batcher({
      run: (tasks) => cell.store.requestDelete(tasks),
      maxItems: 200,
      concurrency: 2,
      spacingMs: COMMIT_SPACING_MS,
    });
  }

  /** Reads a server. The value is null when the cell has no such server. */
  server(uuid: string): Promise<CellAnswer<Server | null>> {
    return this.#ask(() => this.#reads.submit(uuid));
  }

  /** Reads those of the given servers that the cell has. What it says of others does not count, because they may live in other cells. */
  servers(uuids: readonly string[]): Promise<CellAnswer<readonly Server[]>> {
    return this.#ask(async () => {
      const asked = new Set(uuids);
      return (await this.#cell.store.servers(uuids)).filter(({ uuid }) => asked.has(uuid));
    });
  }

  /**
   * Reads the servers that were changed in a time. Few such questions are under way at a time, since each may take long and they would use all
   * connections to the database: `too-slow` is also the answer when others have used up the time, or the
   * cell is silent.
   */
  serversChanged(query: Omit<ChangesQuery, "msMax">): Promise<CellAnswer<ChangedServers>> {
    const { deadlineMs } = this.#settings;
    const msMax = deadlineMs * CHANGES_TAKE;
    const dueMs = this.#clock.monotonic() + deadlineMs * CHANGES_WAIT;
    const question = async (): Promise<ChangedServers> => {
      try {
        const answer = this.#changes.submit({ query: { ...query, msMax }, dueMs });
        return await withDeadline(answer, deadlineMs, `cell ${this.name}`, this.#clock);
      } catch (error) {
        if (!(error instanceof DeadlineError)) throw error;
        // A small question finds out whether the cell answers at all, and shuts it if not.
        void this.servers([]);
        return { kind: "too-slow" };
      }
    };
    return this.#ask(question, { deadlineMs: 2 * deadlineMs, shuts: true });
  }

  /** Reads servers that ran in a period. Like questions about all hosts, this may take longer and does not shut the cell. */
  serversOfPeriod(query: PeriodQuery): Promise<CellAnswer<PeriodStretch>> {
    return this.#ask(() => this.#cell.store.serversOfPeriod(query), this.#patiently);
  }

  attempts(serverUuid: string): Promise<CellAnswer<readonly Attempt[]>> {
    return this.#ask(() => this.#cell.store.attempts(serverUuid));
  }

  hosts(): Promise<CellAnswer<readonly Host[]>> {
    return this.#ask(() => this.#cell.store.hosts());
  }

  /** Reads hosts with the operators' settings for them. `null` reads all hosts. */
  adminHosts(names: readonly string[] | null): Promise<CellAnswer<readonly AdminHost[]>> {
    const { admin, store } = this.#cell;
    if (admin !== undefined) return this.#ask(() => admin.adminHosts(names));
    return this.#ask(async () => {
      const hosts = (await store.hosts()).filter((host) => names === null || names.includes(host.name));
      return hosts.map((host) => ({ ...host, disabledReason: null, forcedDown: false, seenAtMs: null }));
    });
  }

  /** Reads or changes the cell's hosts. This may take longer than users' questions, and does not shut the cell when it takes too long. */
  admin<Value>(question: (admin: HostAdminStore) => Promise<Value>): Promise<CellAnswer<Value>> {
    const { admin } = this.#cell;
    if (admin === undefined) return Promise.resolve({ kind: "unreachable" });
    return this.#ask(() => question(admin), this.#patiently);
  }

  get #patiently() {
    return { deadlineMs: this.#settings.deadlineMs * ADMIN_PATIENCE, shuts: false };
  }

  /** Begins an operation, those of concurrent calls in one transaction. */
  begin(begin: BeginOperation): Promise<CellAnswer<BeginOutcome>> {
    return this.#ask(() => this.#begins.submit(begin));
  }

  /** Reads the consumer's allocations. */
  holding(consumerUuid: string): Promise<CellAnswer<Holding | null>> {
    return this.#ask(() => this.#holdings.submit(consumerUuid));
  }

  /** Reads the allocations that were claimed for the attempt, with their mapping. */
  claimed(attemptId: string): Promise<CellAnswer<AllocationRequest | null>> {
    return this.#ask(() => this.#claims.submit(attemptId));
  }

  /** Resolves with false when the view will not soon show everything that was committed before the call. */
  async viewSeesAll(deadlineMs: number): Promise<boolean> {
    const { source } = this.#cell;
    return (
      source?.waitUntilSeen(deadlineMs).then(
        () => true,
        () => false,
      ) ?? true
    );
  }

  /** Reads or changes the operations on the cell's servers. */
  operations<Value>(question: (store: CellPort["store"]) => Promise<Value>): Promise<CellAnswer<Value>> {
    return this.#ask(() => question(this.#cell.store));
  }

  serverCountByHost(): Promise<CellAnswer<ReadonlyMap<string, number>>> {
    return this.#ask(() => this.#cell.store.serverCountByHost());
  }

  /** The ledger view of the cell's providers, or null when this process follows none. */
  get view(): CellPort["view"] {
    return this.#cell.view;
  }

  requestDelete(task: Task): Promise<CellAnswer<DeleteOutcome>> {
    return this.#ask(() => this.#deletes.submit(task));
  }

  /**
   * Publishes a stored task, so that the cell's conductors find it sooner than in their own sweep. `messageId` is for a task that was
   * published before, whose message would otherwise be dropped as a duplicate. Rejects as `Bus.publish` does.
   */
  publishTask(task: Task, headers: Readonly<Record<string, string>>, messageId?: string): Promise<void> {
    return this.#announcer.announce(task, headers, messageId);
  }

  /**
   * Asks the host of a guest for the end of its console, to open its console for a client, for the CPUs that the guest has, or to change its interfaces. `failed` means that this is impossible now; the cell itself may be
   * well then, so this does not shut it. A conductor to which the host is not connected answers in vain, so several are asked.
   */
  async console(question: ConsoleQuestion): Promise<ConsoleReply> {
    const bytes = encodeMessage(ConsoleQuestion, question);
    const timeoutMs = question.interfaces === undefined ? CONSOLE_MS : INTERFACES_MS;
    try {
      for (let ask = 0; ask < CONSOLE_ASKS_MAX; ask += 1) {
        const told = await this.#cell.bus.ask(cellConsolesSubject(this.name), bytes, { timeoutMs });
        const { answer } = ConsoleAnswer.decode(told);
        if (answer !== undefined && answer.$case !== "away") return answer;
      }
      return { $case: "failed", value: "the host is connected to no conductor that was asked" };
    } catch (error) {
      if (!(error instanceof BusError)) throw error;
      return { $case: "failed", value: error.message };
    }
  }

  async #readServers(uuids: readonly string[]): Promise<(Server | null)[]> {
    const found = await this.#cell.store.servers([...new Set(uuids)]);
    const byUuid = new Map(found.map((server) => [server.uuid, server]));
    return uuids.map((uuid) => byUuid.get(uuid) ?? null);
  }

  async #ask<Value>(
    question: () => Promise<Value>,
    { deadlineMs, shuts } = { deadlineMs: this.#settings.deadlineMs, shuts: true },
  ): Promise<CellAnswer<Value>> {
    const askedMs = this.#clock.monotonic();
    if (askedMs < this.#shutUntilMs) return { kind: "unreachable" };
    try {
      const value = await withDeadline(question(), deadlineMs, `cell ${this.name}`, this.#clock);
      this.#answeredMs = Math.max(this.#answeredMs, askedMs);
      return { kind: "answer", value };
    } catch (error) {
      if (shuts) this.#shut(askedMs, error);
      this.#events.cellUnreachable(this.name, error);
      return { kind: "unreachable" };
    }
  }

  #shut(askedMs: number, error: unknown): void {
    // The database answered, and refused this one question.
    if (error instanceof StoreError && error.code === "bug") return;
    const isLate = error instanceof DeadlineError || isGivenUp(error);
    if (isLate && this.#answeredMs > askedMs) return;
    this.#shutUntilMs = this.#clock.monotonic() + this.#settings.retryMs;
    if (isLate) void this.#openIfAnswering(this.#shutUntilMs);
  }

  /** Opens the cell again when it answers a small question, unless another failure has shut it meanwhile. */
  async #openIfAnswering(shutUntilMs: number): Promise<void> {
    const { deadlineMs } = this.#settings;
    try {
      await withDeadline(this.#cell.store.servers([]), deadlineMs, `cell ${this.name}`, this.#clock);
    } catch {
      return;
    }
    if (this.#shutUntilMs === shutUntilMs) this.#shutUntilMs = Number.NEGATIVE_INFINITY;
  }
}

/** SQLSTATE of a statement that took longer than Postgres lets it take. */
const CANCELED = "57014";

/** Whether the database gave a question up that took too long. */
function isGivenUp(error: unknown): boolean {
  return error instanceof StoreError && (error.cause as { readonly code?: unknown } | undefined)?.code === CANCELED;
}
