import { cellTasksSubject } from "../../../adapters/nats/streams.ts";
import type { DeleteOutcome } from "../../../core/cell/cell-store.ts";
import type { AdminHost, HostAdminStore } from "../../../core/cell/host-admin-store.ts";
import type { BeginOperation, BeginOutcome, Holding } from "../../../core/cell/operation-store.ts";
import type { Attempt, Host, Server } from "../../../core/cell/server.ts";
import { Task } from "../../../proto/gen/berth/cell.ts";
import type { AllocationRequest } from "../../../proto/gen/berth/shared.ts";
import { Batcher, COMMIT_SPACING_MS } from "../../../runtime/batcher.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { withDeadline } from "../../../runtime/deadline.ts";
import { encodeOnce } from "../../../runtime/encode-once.ts";
import type { ApiEvents } from "../events.ts";
import type { CellPort } from "../ports.ts";
import type { CellSettings } from "../settings.ts";

/** The answer of a cell; `unreachable` when it gave none in time, or has just shown that it gives none. */
export type CellAnswer<Value> = { readonly kind: "answer"; readonly value: Value } | { readonly kind: "unreachable" };

/** How much longer than a user's question one about all hosts may take. */
const ADMIN_PATIENCE = 5;

/**
 * One cell as the api asks it: single questions that arrive together go as one query, each with a deadline.
 *
 * Two modes: reachable, and shut. A question that failed or came too late shuts the cell for `retryMs`: whoever asks
 * meanwhile hears `unreachable` at once, so that a dead cell costs a list one deadline and not one a request. The first
 * question after that opens it again, or shuts it anew.
 */
export class CellClient {
  readonly name: string;
  readonly #cell: CellPort;
  readonly #clock: Clock;
  readonly #events: ApiEvents;
  readonly #settings: CellSettings;
  readonly #reads: Batcher<string, Server | null>;
  readonly #deletes: Batcher<Task, DeleteOutcome>;
  readonly #begins: Batcher<BeginOperation, BeginOutcome>;
  readonly #holdings: Batcher<string, Holding | null>;
  readonly #claims: Batcher<string, AllocationRequest | null>;
  #shutUntilMs = Number.NEGATIVE_INFINITY;

  constructor(cell: CellPort, deps: { readonly clock: Clock; readonly events: ApiEvents }, settings: CellSettings) {
    this.name = cell.name;
    this.#cell = cell;
    this.#clock = deps.clock;
    this.#events = deps.events;
    deps.events.cellKnown(cell.name);
    this.#settings = settings;
    this.#reads = new Batcher({ run: (uuids) => this.#readServers(uuids), maxItems: 1000, concurrency: 4 });
    this.#begins = new Batcher({
      run: (begins) => cell.store.begin(begins),
      maxItems: 200,
      spacingMs: COMMIT_SPACING_MS,
    });
    this.#holdings = new Batcher({ run: (uuids) => cell.store.holdings(uuids), maxItems: 1000 });
    this.#claims = new Batcher({ run: (attemptIds) => cell.store.claimed(attemptIds), maxItems: 1000 });
    this.#deletes = new Batcher({
      run: (tasks) => cell.store.requestDelete(tasks),
      maxItems: 200,
      concurrency: 2,
      spacingMs: COMMIT_SPACING_MS,
    });
  }

  /** Null in the answer: the cell has no such server. */
  server(uuid: string): Promise<CellAnswer<Server | null>> {
    return this.#ask(() => this.#reads.submit(uuid));
  }

  /** Those of them that the cell has. */
  servers(uuids: readonly string[]): Promise<CellAnswer<readonly Server[]>> {
    return this.#ask(() => this.#cell.store.servers(uuids));
  }

  serversChangedSince(sinceMs: number, limit: number): Promise<CellAnswer<readonly Server[]>> {
    return this.#ask(() => this.#cell.store.serversChangedSince(sinceMs, limit));
  }

  attempts(serverUuid: string): Promise<CellAnswer<readonly Attempt[]>> {
    return this.#ask(() => this.#cell.store.attempts(serverUuid));
  }

  hosts(): Promise<CellAnswer<readonly Host[]>> {
    return this.#ask(() => this.#cell.store.hosts());
  }

  /** With what operators say of them; `null`: all. */
  adminHosts(names: readonly string[] | null): Promise<CellAnswer<readonly AdminHost[]>> {
    const { admin, store } = this.#cell;
    if (admin !== undefined) return this.#ask(() => admin.adminHosts(names));
    return this.#ask(async () => {
      const hosts = (await store.hosts()).filter((host) => names === null || names.includes(host.name));
      return hosts.map((host) => ({ ...host, disabledReason: null, forcedDown: false, seenAtMs: null }));
    });
  }

  /**
   * Asks, or tells, the cell of its hosts. That may take longer than what users ask, and shuts the cell for nobody when it is
   * too long.
   */
  admin<Value>(question: (admin: HostAdminStore) => Promise<Value>): Promise<CellAnswer<Value>> {
    const { admin } = this.#cell;
    if (admin === undefined) return Promise.resolve({ kind: "unreachable" });
    return this.#ask(() => question(admin), { deadlineMs: this.#settings.deadlineMs * ADMIN_PATIENCE, shuts: false });
  }

  /** Begins an operation, those of concurrent calls in one transaction. */
  begin(begin: BeginOperation): Promise<CellAnswer<BeginOutcome>> {
    return this.#ask(() => this.#begins.submit(begin));
  }

  /** What the consumer holds. */
  holding(consumerUuid: string): Promise<CellAnswer<Holding | null>> {
    return this.#ask(() => this.#holdings.submit(consumerUuid));
  }

  /** What was claimed for the attempt, with its mapping. */
  claimed(attemptId: string): Promise<CellAnswer<AllocationRequest | null>> {
    return this.#ask(() => this.#claims.submit(attemptId));
  }

  /** False: the view does not show all that was committed before the call, and not soon. */
  async viewSeesAll(deadlineMs: number): Promise<boolean> {
    const { source } = this.#cell;
    return (
      source?.waitUntilSeen(deadlineMs).then(
        () => true,
        () => false,
      ) ?? true
    );
  }

  /** Asks, or tells, the cell of what is done to its servers. */
  operations<Value>(question: (store: CellPort["store"]) => Promise<Value>): Promise<CellAnswer<Value>> {
    return this.#ask(() => question(this.#cell.store));
  }

  serverCountByHost(): Promise<CellAnswer<ReadonlyMap<string, number>>> {
    return this.#ask(() => this.#cell.store.serverCountByHost());
  }

  /** What the view shows of this cell's providers; null: this process follows no view of it. */
  get view(): CellPort["view"] {
    return this.#cell.view;
  }

  requestDelete(task: Task): Promise<CellAnswer<DeleteOutcome>> {
    return this.#ask(() => this.#deletes.submit(task));
  }

  /**
   * Brings a stored task to the cell's conductors sooner than their own sweep would. `messageId`: for one that was published before.
   * Rejects as `Bus.publish` does.
   */
  publishTask(task: Task, headers: Readonly<Record<string, string>>, messageId: string = task.id): Promise<void> {
    return this.#cell.bus.publish(cellTasksSubject(this.name), encodeOnce(Task, task), { id: messageId, headers });
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
    if (this.#clock.monotonic() < this.#shutUntilMs) return { kind: "unreachable" };
    try {
      const value = await withDeadline(question(), deadlineMs, `cell ${this.name}`, this.#clock);
      return { kind: "answer", value };
    } catch (error) {
      if (shuts) this.#shutUntilMs = this.#clock.monotonic() + this.#settings.retryMs;
      this.#events.cellUnreachable(this.name, error);
      return { kind: "unreachable" };
    }
  }
}
