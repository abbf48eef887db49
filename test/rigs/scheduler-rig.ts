import { pino } from "pino";
import { Registry } from "prom-client";
import { MemoryApiStore } from "../../adapters/memory/api/memory-api-store.ts";
import { MemoryReservationStore } from "../../adapters/memory/api/memory-reservation-store.ts";
import { MemoryServerGroupStore } from "../../adapters/memory/api/memory-server-group-store.ts";
import { MemoryBroker } from "../../adapters/memory/bus/memory-broker.ts";
import { MemoryCellStore } from "../../adapters/memory/cell/memory-cell-store.ts";
import { MemoryLedger } from "../../adapters/memory/cell/memory-ledger.ts";
import { MemorySoftState } from "../../adapters/memory/memory-soft-state.ts";
import { messageOfRequest } from "../../adapters/nats/schedule-message.ts";
import {
  apiPermissions,
  apiStreams,
  cellPermissionsOfApi,
  cellStreams,
  cellTasksConsumer,
  conductorPermissions,
  schedulerRequestsSubject,
} from "../../adapters/nats/streams.ts";
import { noTracing } from "../../adapters/telemetry/tracing.ts";
import { assert } from "../../core/assert.ts";
import { LedgerView } from "../../core/ledger/ledger-view.ts";
import { LiveCellFacts, viewWithFacts } from "../../core/scheduling/live-cell-facts.ts";
import { ViewError, type ViewSource } from "../../core/stores/cell/view-source.ts";
import { TaskNotice } from "../../proto/gen/berth/cell.ts";
import { ScheduleRequest } from "../../proto/gen/berth/scheduler.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { Bus, BusMessage } from "../../runtime/bus.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import type { SchedulerCell } from "../../services/scheduler/ports.ts";
import { createScheduler, type Scheduler, type SchedulerDeps } from "../../services/scheduler/service.ts";
import { DEFAULT_SCHEDULER_SETTINGS, type SchedulerSettings } from "../../services/scheduler/settings.ts";
import { hostName, hostTree, providerOf, serverSpec } from "../contract/cell-fixtures.ts";
import { eventually } from "./eventually.ts";

/** An in-memory cell. The test can reach everything between it and a scheduler. */
export interface RigCell {
  readonly name: string;
  readonly store: MemoryCellStore;
  readonly ledger: MemoryLedger;
  readonly broker: MemoryBroker;
  /** Hosts 1 … n get this many VCPUs. */
  addHosts(vcpus: readonly number[]): Promise<void>;
  /** A new view of the cell, and the scheduler's access to it. `over` replaces parts. */
  open(over?: Partial<SchedulerCell>): SchedulerCell;
  /** The scheduler's access to the cell, with a view that never changes. */
  openFrozen(over?: Partial<SchedulerCell>): SchedulerCell;
}

/** The base of the scheduler's tests: the in-process twins of the stores and buses, on a clock that stands still. */
export class SchedulerRig {
  readonly clock = new ManualClock(1_700_000_000_000);
  readonly apiStore = new MemoryApiStore({ clock: this.clock });
  readonly groups = new MemoryServerGroupStore({ requests: this.apiStore });
  readonly reservations = new MemoryReservationStore({ clock: this.clock, requests: this.apiStore });
  readonly apiBroker = new MemoryBroker(this.clock);
  readonly softState = new MemorySoftState(this.clock);
  /** UUIDs of servers, and ids of moves, whose message was acknowledged and that were not put off, in order. */
  readonly acked: string[] = [];
  /** UUIDs of servers that were put off in their rows, and of those whose message will be delivered again. */
  readonly putOff: string[] = [];
  readonly #published: string[] = [];
  #redelivered = false;
  readonly #schedulers: Scheduler[] = [];
  readonly #brokers: MemoryBroker[] = [this.apiBroker];

  constructor() {
    const putOff = this.apiStore.putOff.bind(this.apiStore);
    this.apiStore.putOff = (putOffs) => {
      this.putOff.push(...putOffs.map(({ serverUuid }) => serverUuid));
      return putOff(putOffs);
    };
  }

  async addCell(name: string): Promise<RigCell> {
    const { clock } = this;
    await this.apiStore.putCell({ name, databaseUrl: `postgres://${name}`, natsUrl: null, disabled: false });
    const ledger = new MemoryLedger();
    const store = new MemoryCellStore({ clock, ledger });
    const broker = new MemoryBroker(clock);
    this.#brokers.push(broker);
    await broker.connect(cellPermissionsOfApi(name)).ensureStreams(cellStreams(name));
    const rigCell: RigCell = {
      name,
      store,
      ledger,
      broker,
      async addHosts(vcpus) {
        const hosts = vcpus.map((_, index) => index + 1);
        await ledger.putTrees(hosts.map((host) => hostTree(host, vcpus[host - 1] as number)));
        await store.hostsUp(
          `agent-${name}`,
          hosts.map((host) => ({ name: hostName(host), rootProvider: providerOf(host) })),
        );
      },
      open(over = {}) {
        const view = new LedgerView();
        const facts = new LiveCellFacts(name, view);
        const followed = viewWithFacts(view, facts);
        store.follow((_, rows) => followed.applyAll(rows));
        return { name, store, bus: broker.connect(cellPermissionsOfApi(name)), view, facts, source: store, ...over };
      },
      openFrozen(over = {}) {
        const view = new LedgerView();
        const facts = new LiveCellFacts(name, view);
        store.follow((_, rows) => viewWithFacts(view, facts).applyAll(rows))();
        return rigCell.open({ view, facts, ...over });
      },
    };
    return rigCell;
  }

  /** A started scheduler with these cells. */
  async start(
    cells: readonly SchedulerCell[],
    over: Partial<SchedulerDeps> = {},
    settings: Partial<SchedulerSettings> = {},
  ): Promise<Scheduler> {
    const scheduler = createScheduler(
      {
        store: this.apiStore,
        groups: this.groups,
        reservations: this.reservations,
        bus: this.#watchedBus(),
        cells,
        softState: this.softState,
        clock: this.clock,
        logger: pino({ level: "silent" }),
        registry: new Registry(),
        tracing: noTracing,
        ...over,
      },
      { ...DEFAULT_SCHEDULER_SETTINGS, schedulerId: `scheduler-${this.#schedulers.length + 1}`, ...settings },
    );
    this.#schedulers.push(scheduler);
    await scheduler.start();
    return scheduler;
  }

  /** A request for only this many VCPUs, made now. */
  wants(server: number, vcpus = 1, extraSpecs: Readonly<Record<string, string>> = {}): ServerSpec {
    const spec = serverSpec(server, { createdAtMs: this.clock.now() });
    assert(spec.flavor !== undefined, "the fixture has a flavor");
    const onlyVcpus = { "resources:VCPU": `${vcpus}`, "resources:MEMORY_MB": "0", "resources:DISK_GB": "0" };
    return { ...spec, flavor: { ...spec.flavor, extraSpecs: { ...onlyVcpus, ...extraSpecs } } };
  }

  /** Accepts the requests. With `published` false their messages are lost. */
  async accept(specs: readonly ServerSpec[], published = true): Promise<void> {
    await this.apiStore.accept(specs);
    if (!published) return;
    const bus = this.apiBroker.connect(apiPermissions);
    await bus.ensureStreams(apiStreams);
    for (const spec of specs)
      await bus.publish(schedulerRequestsSubject, messageOfRequest(spec.uuid), { id: spec.uuid });
  }

  /** Accepts the servers of one call, and publishes one message for them. */
  async acceptTogether(specs: readonly ServerSpec[], minCount: number, reservationId = "call"): Promise<void> {
    const servers = specs.map((spec) => ({ ...spec, reservationId }));
    await this.reservations.reserve({ id: reservationId, serverUuids: servers.map((spec) => spec.uuid), minCount });
    await this.apiStore.accept(servers);
    await this.publish(servers[0]!, reservationId);
  }

  /** Announces a request to the schedulers, as the api or a sweep does. */
  async publish(spec: ServerSpec, id: string): Promise<void> {
    const bus = this.apiBroker.connect(apiPermissions);
    await bus.ensureStreams(apiStreams);
    await bus.publish(schedulerRequestsSubject, messageOfRequest(spec.uuid), { id });
  }

  /** Announces several requests in one message. */
  async announce([first = "", ...more]: readonly string[]): Promise<void> {
    const bus = this.apiBroker.connect(apiPermissions);
    await bus.ensureStreams(apiStreams);
    await bus.publish(schedulerRequestsSubject, messageOfRequest(first, more));
  }

  /** The ids of the tasks that were published to a cell so far. */
  async publishedTo(cell: RigCell): Promise<readonly string[]> {
    const bus = cell.broker.connect(conductorPermissions(cell.name));
    await bus.consume(cellTasksConsumer, { maxInFlight: 1_000 }, (message) => {
      const { id, more } = TaskNotice.decode(message.data);
      for (const each of [id, ...more]) {
        const task = cell.store.tasks().find((row) => row.id === each);
        this.#published.push(`${task?.kind} ${task?.serverUuid} in ${cell.name}`);
      }
      message.ack();
    });
    return this.#published;
  }

  async state(serverUuid: string): Promise<string | undefined> {
    const [record] = await this.apiStore.requests([serverUuid]);
    return record && (record.cell === null ? record.state : `${record.state} ${record.cell}`);
  }

  /** A bus that records the fate of the work queue's messages. */
  #watchedBus(): Bus {
    const bus = this.apiBroker.connect(apiPermissions);
    const watch = (message: BusMessage): BusMessage => {
      this.#redelivered ||= message.deliveries > 1;
      const uuid = decodedId(message.data);
      const { subject, data, headers, deliveries, storedAtMs } = message;
      const putOffBefore = this.putOff.length;
      return {
        ...{ subject, data, headers, deliveries, storedAtMs },
        ack: () => {
          if (!this.putOff.slice(putOffBefore).includes(uuid)) this.acked.push(uuid);
          message.ack();
        },
        retry: (delayMs) => {
          this.putOff.push(uuid);
          message.retry(delayMs);
        },
      };
    };
    return {
      publish: (...args) => bus.publish(...args),
      ensureStreams: (specs) => bus.ensureStreams(specs),
      streamState: () => bus.streamState(),
      ask: (...args) => bus.ask(...args),
      answer: (...args) => bus.answer(...args),
      close: () => bus.close(),
      consume: (name, options, onMessage) => bus.consume(name, options, (message) => onMessage(watch(message))),
    };
  }

  /** Advances the time until the request is in one of the states, in the notation of `state`. */
  async passUntil(serverUuid: string, states: RegExp, stepMs = 1_000): Promise<void> {
    await eventually(`${serverUuid} to be ${states}`, async () => {
      if (states.test((await this.state(serverUuid)) ?? "")) return true;
      this.clock.advance(stepMs);
      return false;
    });
  }

  /**
   * Advances the clock until a message is delivered again, and no further, so that no deadline of its second subscriber passes. Resolves
   * when a message was acknowledged.
   */
  async passUntilSecondDeliveryEnds(): Promise<void> {
    await eventually("the second delivery to end", () => {
      if (!this.#redelivered) this.clock.advance(5_000);
      return this.acked.length >= 1;
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#schedulers.map((scheduler) => scheduler.close()));
    for (const broker of this.#brokers) broker.close();
  }
}

/** The id of the server or the move. */
function decodedId(data: Uint8Array): string {
  try {
    const { server, move, serverUuid, moveId } = ScheduleRequest.decode(data);
    return serverUuid || moveId || (server?.uuid ?? move?.id ?? "malformed");
  } catch {
    return "malformed";
  }
}

/** A source that is loading again. */
export const loadingSource: ViewSource = {
  ready: false,
  waitUntilSeen: () => Promise.reject(new ViewError("behind", "a cell", "it does not answer")),
  onApplied: () => () => {},
};

/** A source whose view catches up only when the test releases it. */
export class HeldSource implements ViewSource {
  readonly ready = true;
  waits = 0;
  readonly #handlers = new Set<(xid: number) => void>();
  #waiting: ((hadBeenShown: boolean) => void)[] = [];

  waitUntilSeen(): Promise<boolean> {
    this.waits += 1;
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  onApplied(handler: (xid: number) => void): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  applied(xid: number): void {
    for (const handler of this.#handlers) handler(xid);
  }

  catchUp(): void {
    for (const resolve of this.#waiting.splice(0)) resolve(false);
  }
}
