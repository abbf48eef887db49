import { pino } from "pino";
import { Registry } from "prom-client";
import type { ConsoleListener } from "../../adapters/consoles/console-listener.ts";
import { MemoryBroker } from "../../adapters/memory/bus/memory-broker.ts";
import { MemoryCellStore } from "../../adapters/memory/cell/memory-cell-store.ts";
import { MemoryLedger } from "../../adapters/memory/cell/memory-ledger.ts";
import type { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
import { MemoryNetwork } from "../../adapters/memory/memory-network.ts";
import type { MemoryNetworking } from "../../adapters/memory/memory-networking.ts";
import { cellEventsForApi, cellStreams, cellTasksSubject } from "../../adapters/nats/streams.ts";
import { TaskAnnouncer } from "../../adapters/nats/task-announcer.ts";
import { noTracing, type Tracing } from "../../adapters/telemetry/tracing.ts";
import { consumerUuid } from "../../core/ledger/ids.ts";
import type { CellStore } from "../../core/stores/cell/cell-store.ts";
import type { Ledger } from "../../core/stores/cell/ledger-port.ts";
import type { Server } from "../../core/tasks/server.ts";
import { CellEvent, Task } from "../../proto/gen/berth/cell.ts";
import type { PortResourceRequest, ServerPort, ServerVolume } from "../../proto/gen/berth/shared.ts";
import type { Bus } from "../../runtime/bus.ts";
import { type Clock, systemClock } from "../../runtime/clock.ts";
import type { Driver } from "../../services/compute-agent/driver.ts";
import { FakeDriver } from "../../services/compute-agent/fake-driver.ts";
import { volumesInUse } from "../../services/compute-agent/fake-replacements.ts";
import { FAKE_METADATA_KEY, type FakeScript } from "../../services/compute-agent/fake-script.ts";
import type { FakeShare } from "../../services/compute-agent/fake-volume-files.ts";
import type { HostConfig } from "../../services/compute-agent/host-config.ts";
import { createMemoryJournal, type MemoryDisk } from "../../services/compute-agent/memory-journal.ts";
import { type ComputeAgent, createComputeAgent } from "../../services/compute-agent/service.ts";
import { type Conductor, createConductor } from "../../services/conductor/service.ts";
import { CONDUCTOR_DEFAULTS, type ConductorSettings } from "../../services/conductor/settings.ts";
import { conductorId, deleteTask, dispatchOf, hostName, providerOf, serverId } from "../contract/cell-fixtures.ts";
import { beginOperationOn, type RequestedOperation } from "./begin-operation.ts";
import { EndingClock } from "./ending-clock.ts";
import { eventually } from "./eventually.ts";
import { GatedStore } from "./gated-store.ts";
import { quickClock } from "./quick-clock.ts";

const CELL = "cell-1";

/** Short waits, which take the same real time whatever the speed of the cell's clock is. */
const settingsAt = (speed: number) => ({
  ...CONDUCTOR_DEFAULTS,
  leaseMs: 400 * speed,
  renewMs: 50 * speed,
  sweepMs: 50 * speed,
  untakenMs: 300 * speed,
  heartbeatMs: 300 * speed,
  hostGraceMs: 300 * speed,
});
const silent = () => ({ logger: pino({ level: "silent" }), registry: new Registry() });

export interface ConductorProcess {
  readonly conductor: Conductor;
  readonly gate: GatedStore;
  /** Ends it like `kill -9`: its streams break, and nothing more reaches the database. */
  kill(): Promise<void>;
}

export interface AgentProcess {
  readonly agent: ComputeAgent;
  readonly driver: FakeDriver;
  /** How often a crash script has ended it. */
  readonly crashes: number;
  /** Cuts its network: its streams break, and it no longer reaches any conductor. Its guests continue to run. */
  cutOff(): void;
  /** Restores its network. It dials its conductors again. */
  reconnect(): void;
}

/** The database of a small cell: the ledger and the other tables. */
export interface SmallCellBody<Store extends CellStore> {
  readonly store: Store;
  readonly ledger: Ledger;
}

interface SmallCellOptions {
  readonly tracing?: Tracing;
  /**
   * How many times as fast as the system's clock the cell's clock runs (default 1). The times in settings and scripts are on the cell's clock.
   * Times that Postgres measures pass by its own clock.
   */
  readonly speed?: number;
}

/**
 * One cell in this process, on in-memory twins of everything except perhaps the database. Conductors and agents can be started and stopped.
 */
export class CellOn<Store extends CellStore> {
  readonly ledger: Ledger;
  readonly store: Store;
  readonly network = new MemoryNetwork();
  readonly events: CellEvent[] = [];
  /** Neutron for conductors that are started after it was set. */
  networking: MemoryNetworking | null = null;
  blockStorage: MemoryBlockStorage | null = null;
  readonly #clock: EndingClock;
  readonly #speed: number;
  readonly #broker: MemoryBroker;
  readonly #bus: Bus;
  readonly #drivers: FakeDriver[] = [];
  readonly #closers: (() => Promise<void>)[] = [];
  readonly #tracing: Tracing;

  constructor(
    bodyOn: (clock: Clock) => SmallCellBody<Store>,
    { tracing = noTracing, speed = 1 }: SmallCellOptions = {},
  ) {
    this.#speed = speed;
    this.#clock = new EndingClock(speed === 1 ? systemClock : quickClock(speed));
    this.#broker = new MemoryBroker(this.#clock);
    this.#bus = this.#broker.connect();
    ({ store: this.store, ledger: this.ledger } = bodyOn(this.#clock));
    this.#tracing = tracing;
  }

  async open(): Promise<this> {
    await this.#bus.ensureStreams(cellStreams(CELL));
    await this.#bus.consume(cellEventsForApi, { maxInFlight: 100 }, (message) => {
      const first = CellEvent.decode(message.data);
      this.events.push(first, ...first.more);
      message.ack();
    });
    return this;
  }

  async close(): Promise<void> {
    await Promise.all(this.#closers.map((close) => close()));
    await this.#bus.close();
    this.#broker.close();
    this.#clock.end();
  }

  async startConductor(index: number, overrides: Partial<ConductorSettings> = {}): Promise<ConductorProcess> {
    const gate = new GatedStore(this.store);
    const listener = this.network.listen(`conductor-${index}`);
    const bus = this.#broker.connect();
    const deps = {
      store: gate.store,
      ledger: this.ledger,
      bus,
      listener,
      clock: this.#clock,
      tracing: this.#tracing,
      ...(this.networking !== null && { networking: this.networking }),
      ...(this.blockStorage !== null && { blockStorage: this.blockStorage }),
      ...silent(),
    };
    const id = conductorId(index);
    const conductor = createConductor(deps, {
      ...settingsAt(this.#speed),
      cell: CELL,
      conductorId: id,
      name: `conductor-${index}`,
      ...overrides,
    });
    await conductor.start();
    const kill = async () => {
      gate.die();
      await listener.close();
      await bus.close();
    };
    this.#closers.push(async () => {
      gate.die();
      await Promise.race([conductor.close(), kill()]);
    });
    return { conductor, gate, kill };
  }

  /** Starts an agent for `hosts`, on the disk of its previous process if there was one. Resolves when it has started to dial. */
  async startAgent(options: {
    readonly id: string;
    readonly hosts: readonly number[];
    readonly conductors?: readonly number[];
    readonly disk?: MemoryDisk;
    readonly fake?: FakeScript;
    readonly vcpus?: number;
    readonly resumesGuests?: boolean;
    /** The listener through which clients reach the consoles of guests. */
    readonly consoles?: ConsoleListener;
    /** Wraps the agent's driver. */
    readonly before?: (driver: FakeDriver) => Driver;
    readonly share?: FakeShare | undefined;
  }): Promise<AgentProcess> {
    const hosts = options.hosts.map((host) => hostOf(host, options));
    let [crashes, isCutOff] = [0, false];
    const driver = new FakeDriver({
      clock: this.#clock,
      seed: 1,
      scripts: new Map(hosts.flatMap((host) => (host.fake === undefined ? [] : [[host.name, host.fake]]))),
      byMetadata: true,
      crash: () => {
        crashes += 1;
        void agent.close();
      },
      loseConnections: () => agent.loseConnections(),
      share: options.share,
    });
    const dialer = this.network.dialer();
    const agent: ComputeAgent = createComputeAgent(
      {
        dialer: { ...dialer, dial: (address) => dialer.dial(isCutOff ? "nowhere" : address) },
        journal: createMemoryJournal(options.disk),
        driver: options.before?.(driver) ?? driver,
        clock: this.#clock,
        tracing: this.#tracing,
        fail: (error) => {
          throw error;
        },
        consoles: options.consoles ?? null,
        ...silent(),
      },
      {
        agentId: options.id,
        conductors: (options.conductors ?? [1]).map((index) => `conductor-${index}`),
        hosts,
        buildLimit: 10,
        stopBelievedMs: 50 * this.#speed,
        ...(options.resumesGuests === undefined ? {} : { resumesGuests: options.resumesGuests }),
      },
    );
    await agent.start();
    this.#drivers.push(driver);
    this.#closers.push(() => agent.close());
    return {
      agent,
      driver,
      get crashes() {
        return crashes;
      },
      cutOff() {
        isCutOff = true;
        agent.loseConnections();
      },
      reconnect() {
        isCutOff = false;
      },
    };
  }

  /** Claims for the build of a server on the first of the hosts, stores it and (unless its message is to be lost) publishes it. */
  async boot(
    server: number,
    hosts: readonly number[],
    options: {
      readonly fake?: FakeScript | Record<string, unknown>;
      readonly lost?: boolean;
      readonly vcpus?: number;
      readonly attemptsMax?: number;
      readonly ports?: readonly ServerPort[];
      readonly portRequests?: readonly PortResourceRequest[];
      readonly volumes?: readonly ServerVolume[];
    } = {},
  ): Promise<Uint8Array> {
    const metadata: Record<string, string> =
      options.fake === undefined ? {} : { [FAKE_METADATA_KEY]: JSON.stringify(options.fake) };
    const dispatch = dispatchOf({
      server,
      task: server,
      hosts,
      spec: {
        ...{ metadata, ports: [...(options.ports ?? [])], volumes: [...(options.volumes ?? [])] },
        portRequests: [...(options.portRequests ?? [])],
      },
      ...(options.vcpus ? { vcpus: options.vcpus } : {}),
      ...(options.attemptsMax ? { attemptsMax: options.attemptsMax } : {}),
    });
    const [outcome] = await this.store.dispatch([dispatch]);
    if (outcome?.kind !== "dispatched") throw new Error(`not dispatched: ${JSON.stringify(outcome)}`);
    if (options.lost !== true) await new TaskAnnouncer(this.#bus, CELL).announce(dispatch.task, {});
    return Task.encode(dispatch.task).finish();
  }

  async delete(server: number): Promise<void> {
    const task = deleteTask(server, 1_000 + server);
    const [outcome] = await this.store.requestDelete([task]);
    if (outcome?.kind === "queued") await this.publish(Task.encode(outcome.task).finish());
  }

  /**
   * Begins an operation from the cell's present facts about the server, and publishes it. Returns the migration's UUID, if it is a move.
   */
  async operate(requested: RequestedOperation): Promise<string> {
    const begun = await beginOperationOn(this.store, requested);
    if (begun.outcome.kind !== "begun") throw new Error(`not begun: ${JSON.stringify(begun.outcome)}`);
    if (begun.task !== null) await this.publish(Task.encode(begun.task).finish());
    return begun.task?.id ?? "";
  }

  /** Waits until no operation works on the server, and returns it. */
  rest(server: number): Promise<Server> {
    return eventually(`server ${server} to be at rest`, async () => {
      const found = await this.server(server);
      return found.taskState === null ? found : null;
    });
  }

  /** The VCPUs that the consumer holds, by host. */
  async holds(consumer: string): Promise<Record<string, number>> {
    const items = await this.ledger.allocationsOf(consumerUuid(consumer));
    const dump = await this.ledger.dump();
    return Object.fromEntries(
      items.map((item) => [dump.providers.find((one) => one.uuid === item.provider)?.name ?? "?", item.amount]),
    );
  }

  publish(message: Uint8Array, headers: Readonly<Record<string, string>> = {}): Promise<void> {
    return this.#bus.publish(cellTasksSubject(CELL), message, { headers });
  }

  /** Asks the cell's conductors a question, as an api does. */
  readonly ask: Bus["ask"] = (...question) => this.#bus.ask(...question);

  async server(server: number): Promise<Server> {
    const [found] = await this.store.servers([serverId(server)]);
    if (found === undefined) throw new Error(`no server ${server}`);
    return found;
  }

  /** Waits until the server has the status, and returns it. */
  become(server: number, status: Server["status"]): Promise<Server> {
    return eventually(`server ${server} to be ${status}`, async () => {
      const found = await this.server(server);
      return found.status === status ? found : null;
    });
  }

  hostsUp(count: number): Promise<unknown> {
    return eventually(
      `${count} hosts to be up`,
      async () => (await this.store.hosts()).filter((host) => host.up).length === count,
    );
  }

  /** Names of the hosts on which the server runs, according to the drivers. */
  runsOn(server: number): string[] {
    return this.#guestsOf(server)
      .filter((guest) => guest.running)
      .map((guest) => guest.host);
  }

  /** Names of the hosts on which the server's guest runs from a rescue image. */
  rescuedOn(server: number): string[] {
    return this.#guestsOf(server)
      .filter((guest) => guest.rescued)
      .map((guest) => guest.host);
  }

  /** The volumes that the server's guests use, each after the name of its host. */
  volumesOn(server: number): string[] {
    return this.#guestsOf(server).flatMap((guest) => volumesInUse(guest).map((id) => `${guest.host} ${id}`));
  }

  /** Names of the hosts that have a guest of the server in any state. */
  existsOn(server: number): string[] {
    return this.#guestsOf(server).map((guest) => guest.host);
  }

  /** The guests of each host, according to its driver. */
  copies(): ReadonlyMap<string, readonly { readonly serverUuid: string; readonly attemptId: string }[]> {
    return Map.groupBy(
      this.#drivers.flatMap((driver) => [...driver.guests()]),
      ({ host }) => host,
    );
  }

  /** Names of the hosts on which the server has allocations. */
  async heldOn(server: number): Promise<string[]> {
    const items = await this.ledger.allocationsOf(consumerUuid(serverId(server)));
    const dump = await this.ledger.dump();
    return items.map((item) => dump.providers.find((provider) => provider.uuid === item.provider)?.name ?? "?");
  }

  /** A driver whose process ended no longer has any guests. Its successor's driver reports them. */
  forget(driver: FakeDriver): void {
    this.#drivers.splice(this.#drivers.indexOf(driver), 1);
  }

  #guestsOf(server: number) {
    return this.#drivers.flatMap((driver) => driver.guests()).filter((guest) => guest.serverUuid === serverId(server));
  }
}

/** A cell whose database is also in memory. */
export class SmallCell extends CellOn<MemoryCellStore> {
  constructor(options: SmallCellOptions = {}) {
    super((clock) => {
      const ledger = new MemoryLedger();
      return { ledger, store: new MemoryCellStore({ clock, ledger }) };
    }, options);
  }
}

function hostOf(host: number, options: { readonly fake?: FakeScript; readonly vcpus?: number }): HostConfig {
  return {
    name: hostName(host),
    uuid: providerOf(host),
    inventories: { VCPU: { total: options.vcpus ?? 8 } },
    ...(options.fake === undefined ? {} : { fake: options.fake }),
  };
}
