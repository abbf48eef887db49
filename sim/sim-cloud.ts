import { MemoryApiStore } from "../adapters/memory/api/memory-api-store.ts";
import { MemoryImageStore } from "../adapters/memory/api/memory-image-store.ts";
import { MemoryMoveStore } from "../adapters/memory/api/memory-move-store.ts";
import { MemoryPortNoteStore } from "../adapters/memory/api/memory-port-note-store.ts";
import { MemoryQuotaStore } from "../adapters/memory/api/memory-quota-store.ts";
import { MemoryReservationStore } from "../adapters/memory/api/memory-reservation-store.ts";
import { MemoryServerGroupStore } from "../adapters/memory/api/memory-server-group-store.ts";
import { MemorySoftDeletionStore } from "../adapters/memory/api/memory-soft-deletion-store.ts";
import { MemoryVolumeStore } from "../adapters/memory/api/memory-volume-store.ts";
import { MemoryBroker } from "../adapters/memory/bus/memory-broker.ts";
import { MemorySoftState } from "../adapters/memory/memory-soft-state.ts";
import { apiPermissions, apiStreams } from "../adapters/nats/streams.ts";
import { createRegistry } from "../adapters/telemetry/metrics.ts";
import { noTracing } from "../adapters/telemetry/tracing.ts";
import type { CloudFacts } from "../core/audit/facts.ts";
import type { MoveRecord } from "../core/stores/api/move-store.ts";
import type { SoftState } from "../core/stores/soft-state.ts";
import type { Server } from "../core/tasks/server.ts";
import { withDeadline } from "../runtime/deadline.ts";
import { computeDefaults } from "../services/api/policy/compute-rules.ts";
import { Policy } from "../services/api/policy/policy.ts";
import { createApi } from "../services/api/service.ts";
import { DEFAULT_API_SETTINGS } from "../services/api/settings.ts";
import { createScheduler } from "../services/scheduler/service.ts";
import { DEFAULT_SCHEDULER_SETTINGS } from "../services/scheduler/settings.ts";
import { type ApiCall, callInProcess, type SimAnswer } from "./call-in-process.ts";
import { randomUuidOf } from "./determinism.ts";
import { drawSimHosts } from "./draw-sim-hosts.ts";
import { hearNeighbours } from "./hear-neighbours.ts";
import type { GuestWithVolumes } from "./known-servers.ts";
import type { Mutation } from "./mutations.ts";
import { sharedHttp } from "./shared-http.ts";
import { simBus } from "./sim-bus.ts";
import { SimCell } from "./sim-cell.ts";
import { type CinderHabits, SimCinder } from "./sim-cinder.ts";
import { simGlanceReachedBy } from "./sim-glance.ts";
import { SIM_GROUPS } from "./sim-groups.ts";
import type { HostLoss } from "./sim-hosts.ts";
import { settingsOfApi } from "./sim-neighbours.ts";
import { type NeutronHabits, SimNeutron } from "./sim-neutron.ts";
import { remote, type SimProcess } from "./sim-process.ts";
import { simRoutes } from "./sim-routes.ts";
import { simSoftState } from "./sim-soft-state.ts";
import type { DriverHabits } from "./slow-driver.ts";
import { Supervisor } from "./supervisor.ts";
import { type RebuiltServer, rebuiltServers } from "./task-outcomes.ts";
import { uuidsIn, WaitingForOperator } from "./waiting-for-operator.ts";
import type { World } from "./world.ts";

export interface CloudSize {
  readonly cells: number;
  readonly apis: number;
  readonly schedulers: number;
  /** Number of conductors of each cell. */
  readonly conductors: number;
  /** Number of hosts of all cells together. */
  readonly hosts: number;
}

/** How long a user waits for an answer. */
const ANSWER_MS_MAX = 30_000;
/** Every prefix and every route costs each start of an api some time, so apis get only those that the users of the simulation call. */
const API_SETTINGS = {
  ...DEFAULT_API_SETTINGS,
  http: { ...DEFAULT_API_SETTINGS.http, metrics: false, headRoutes: false, computePrefixes: ["/v2.1"] },
};
/** Simulated operators change neither settings nor aggregates, so schedulers hardly look for changes. */
const SCHEDULER_SETTINGS = { ...DEFAULT_SCHEDULER_SETTINGS, settingsPollMs: 30_000 };
/** No simulated operator overrides a rule, so all apis can share what is slow to parse. */
const POLICY = new Policy(computeDefaults());
/** Headers for a late microversion of the Compute API, and for the first one in which a rebuild fills a boot volume. */
const HEADERS = { "openstack-api-version": "compute 2.90" };
const REBUILDING_HEADERS = { "openstack-api-version": "compute 2.93" };

/**
 * A cloud in a simulated world. The services are the real ones, each in a process of its own that may be killed. Databases, brokers and
 * hypervisors are the in-memory twins, which are reached over the simulated network and lose nothing by themselves.
 */
export class SimCloud {
  readonly cells: readonly SimCell[];
  readonly supervisor: Supervisor;
  /** Called when hosts have lost their power. */
  onDark: (hosts: readonly string[]) => void = () => {};
  /** Called when hosts have lost their network; their guests continue to run. */
  onCut: (hosts: readonly string[]) => void = () => {};
  /** Servers of which a host has lost a guest, until somebody has found them whole. */
  readonly lost = new Set<string>();
  /** Called when a host has lost the guest of a server. */
  onLost: (server: string) => void = () => {};
  /** Called when a cell's database was restored, with the servers that run in the cell. */
  onRestored: (running: readonly string[]) => void = () => {};
  readonly #world: World;
  readonly #size: CloudSize;
  readonly #mutation: Mutation | null;
  readonly #store: MemoryApiStore;
  readonly #groups: MemoryServerGroupStore;
  readonly #reservations: MemoryReservationStore;
  readonly #images: MemoryImageStore;
  readonly #moves: MemoryMoveStore;
  readonly #volumes: MemoryVolumeStore;
  /** Null in a world whose servers have no volumes. */
  readonly cinder: SimCinder | null;
  /** Null in a world whose servers have no ports. */
  readonly neutron: SimNeutron | null;
  readonly #portNotes: MemoryPortNoteStore;
  readonly #softDeletions: MemorySoftDeletionStore;
  readonly #keepDeletedMs: number;
  readonly offloadsAtOnce: boolean;
  readonly #broker: MemoryBroker;
  #softState: SoftState;
  readonly #calls = new Map<string, (call: ApiCall) => Promise<SimAnswer>>();

  constructor(
    world: World,
    options: CloudSize & {
      readonly mutation: Mutation | null;
      /** How long deleted servers can be restored; 0 deletes them at once. */
      readonly keepDeletedMs: number;
      /** Whether a server that is shelved loses its host in the same operation. */
      readonly offloadsAtOnce: boolean;
      readonly cinder?: CinderHabits | undefined;
      readonly neutron?: NeutronHabits | undefined;
      /** How long hypervisors take. */
      readonly habits: DriverHabits;
      /** How far the clock of a process is off, in milliseconds. */
      readonly skewMs: (name: string) => number;
    },
  ) {
    this.#world = world;
    this.#size = options;
    this.#mutation = options.mutation;
    const quotas = new MemoryQuotaStore({ clock: world.clock });
    this.#store = new MemoryApiStore({ clock: world.clock, quotas });
    this.#softDeletions = new MemorySoftDeletionStore(world.clock, { requests: this.#store, quotas });
    this.#keepDeletedMs = options.keepDeletedMs;
    this.offloadsAtOnce = options.offloadsAtOnce;
    this.#images = new MemoryImageStore(this.#store);
    this.#moves = new MemoryMoveStore(world.clock);
    this.#volumes = new MemoryVolumeStore(world.clock, { requests: this.#store });
    const { cinder, neutron, mutation: bug } = options;
    this.cinder = cinder === undefined ? null : new SimCinder(world, cinder, this, bug?.blockStorage);
    this.neutron = neutron === undefined ? null : new SimNeutron(world, neutron, this, bug?.networking);
    this.#portNotes = new MemoryPortNoteStore(world.clock, { requests: this.#store });
    this.#groups = new MemoryServerGroupStore({ requests: this.#store });
    this.#reservations = new MemoryReservationStore({ clock: world.clock, requests: this.#store });
    this.#broker = new MemoryBroker(world.clock);
    this.#softState = new MemorySoftState(world.clock);
    this.supervisor = new Supervisor(world, options.skewMs);
    const hosts = drawSimHosts(options.hosts, world.random("hosts"));
    this.cells = Array.from({ length: options.cells }, (_, index) => {
      const own = hosts.filter((_host, at) => at % options.cells === index);
      const { conductors, mutation, habits } = options;
      return new SimCell(world, {
        ...{ name: `cell${index + 1}`, hosts: own, conductors },
        ...{ mutation, habits, neighbours: this },
      });
    });
  }

  /** Whether servers boot from volumes, which Cinder fills with images when they are rebuilt. */
  get fillsVolumes(): boolean {
    return (this.cinder?.fills ?? null) !== null;
  }

  get keepsDeleted(): boolean {
    return this.#keepDeletedMs > 0;
  }

  /** The soft deletions that a cell has not carried out, and the servers whose state in their cell is another one than that of their request. */
  async openSoftDeletions(): Promise<readonly string[]> {
    const open = this.#softDeletions.unsettled().map(({ serverUuid, aim }) => `server ${serverUuid} is not ${aim} yet`);
    const records = await this.#store.requests(this.#store.auditedRequests().map(({ serverUuid }) => serverUuid));
    const wrong = records.flatMap(({ serverUuid, softlyDeleted }) => {
      const server = this.look(serverUuid);
      if (server === null || (server.host === null && softlyDeleted)) return [];
      return (server.status === "SOFT_DELETED") === softlyDeleted ? [] : [server];
    });
    return [...open, ...wrong.map(({ uuid, status }) => `server ${uuid} is ${status}, and its request says otherwise`)];
  }

  /** Sets everything up and starts every process. */
  async open(flavors: Parameters<MemoryApiStore["createFlavor"]>[0][]): Promise<void> {
    await this.#broker.connect(apiPermissions).ensureStreams(apiStreams);
    for (const cell of this.cells) {
      await cell.open();
      await this.#store.putCell({ name: cell.name, databaseUrl: `sim://${cell.name}`, natsUrl: null, disabled: false });
    }
    for (const flavor of flavors) await this.#store.createFlavor(flavor);
    for (const group of SIM_GROUPS) await this.#groups.createGroup(group, SIM_GROUPS.length);
    const slots = [
      ...this.cells.flatMap((cell) => cell.slots()),
      ...named("scheduler", this.#size.schedulers, (process) => this.#schedule(process)),
      ...named("api", this.#size.apis, (process) => this.#serve(process)),
    ];
    hearNeighbours(this.#world, this);
    // The services answer each other over the network, which takes simulated time, so starts are not awaited here.
    for (const slot of slots) void this.supervisor.add(slot);
  }

  /** Calls an api over the network. Resolves with null when no answer came. */
  call(from: SimProcess, api: string, call: ApiCall): Promise<SimAnswer | null> {
    const answered = from.call(api, () => this.#calls.get(api)?.(call) ?? Promise.reject(new Error("refused")));
    // An api that is killed during the call never answers.
    return withDeadline(answered, ANSWER_MS_MAX, api, from.clock).catch(() => null);
  }

  /** Deletes everything in the soft state. */
  flushSoftState(): void {
    this.#softState = new MemorySoftState(this.#world.clock);
  }

  /** Cuts the power of the hosts that an agent carries, and restores it after `awayMs`. */
  losePower(agent: string, awayMs: number): void {
    const hosts = this.cells.flatMap((cell) => cell.harm(agent, (one) => one.losePower()));
    this.supervisor.kill(agent, awayMs);
    this.onDark(hosts);
  }

  /** Ends one of the guests that run, without an order. */
  endGuest(draw: number, by: "shut-down" | "crashed"): void {
    const uuid = this.cells[draw % this.cells.length]?.endGuest(draw, by) ?? null;
    if (uuid === null) return;
    this.#world.history.record("guest", by, { server: uuid });
    this.#world.onUnwanted(uuid, "stopped");
  }

  /** The hosts of an agent lose one guest, its journal, or a disk with the journal and all guests. An agent that loses its journal is away for `awayMs`. */
  loseGuests(agent: string, what: HostLoss, { draw, awayMs }: { draw: number; awayMs: number }): void {
    if (what !== "loseGuest") this.supervisor.kill(agent, awayMs);
    for (const server of this.cells.flatMap((cell) => cell.harm(agent, (hosts) => hosts[what](draw)))) {
      this.#world.history.record(agent, what, { server });
      if (this.lost.has(server)) continue;
      this.lost.add(server);
      this.onLost(server);
    }
  }

  /** Cuts the hosts that an agent carries off from the network for a while. */
  cutOff(agent: string): void {
    this.onCut(this.cells.flatMap((cell) => cell.hostsOf(agent)));
  }

  /** Fences a host without power, so that it stays without, or lifts the fence. */
  fence(host: string, isFenced: boolean): void {
    for (const cell of this.cells) cell.fence(host, isFenced);
  }

  /** Hosts on which the server runs now. The hosts of agents that lied do not count for the servers that they were told to build. */
  homesOf(serverUuid: string): string[] {
    return this.cells.flatMap((cell) => {
      const homes = cell.homesOf(serverUuid);
      if (!cell.isInLiarsHands(serverUuid)) return homes;
      const lying = new Set(cell.lyingHosts());
      return homes.filter((host) => !lying.has(host));
    });
  }

  /**
   * Whether a lie or a lost guest explains a violation: it is about the guest of a server that a lying agent was told to build, or that a host has lost. The laws of the
   * ledger hold for such a server, too, and everything that is done with it ends.
   */
  isExcused(law: number | "groups" | "volumes", text: string): boolean {
    if (law !== 4 && law !== 6 && !text.includes("runs nowhere")) return false;
    return uuidsIn(text).some((uuid) => this.lost.has(uuid) || this.cells.some((cell) => cell.isInLiarsHands(uuid)));
  }

  /** The servers that wait for an operator, and all servers of their groups. No operator is simulated. */
  async waitingForOperator(): Promise<WaitingForOperator> {
    const undecided = new Set((await Promise.all(this.cells.map((cell) => cell.undecided()))).flat());
    if (undecided.size === 0) return new WaitingForOperator(undecided, undecided);
    const records = await this.#store.requests(this.#store.auditedRequests().map(({ serverUuid }) => serverUuid));
    const groups = new Map(records.map(({ serverUuid, spec }) => [serverUuid, spec.group?.uuid]));
    const held = new Set([...undecided].flatMap((uuid) => groups.get(uuid) ?? []));
    const mates = [...groups].flatMap(([uuid, group]) => (group !== undefined && held.has(group) ? uuid : []));
    return new WaitingForOperator(undecided, new Set([...undecided, ...mates]));
  }

  /** Hosts without power, as a person in front of them sees it. */
  darkHosts(): string[] {
    return this.cells.flatMap((cell) => cell.darkHosts());
  }

  /** The present state of a server, read without asking an api, or null when it is in no cell. */
  look(uuid: string): Server | null {
    for (const cell of this.cells) {
      const server = cell.look(uuid);
      if (server !== null) return server;
    }
    return null;
  }

  /** All guests, with the volumes that they have. */
  guests(): readonly GuestWithVolumes[] {
    return this.cells.flatMap((cell) => cell.guestsWithVolumes());
  }

  /** The source of the server's move that has not ended, or null. */
  keeperOf(serverUuid: string): string | null {
    const moves = this.cells.flatMap((cell) => cell.copyFacts().moves);
    return moves.find((move) => move.inFlight && move.serverUuid === serverUuid)?.sourceHost ?? null;
  }

  /** The latest rebuild of each server by which its boot volume was to be filled. */
  rebuilt(): readonly RebuiltServer[] {
    return this.cells.flatMap(({ tasks }) => rebuiltServers(tasks));
  }

  /** Moves that were accepted. */
  moves(): readonly MoveRecord[] {
    return this.#moves.all();
  }

  /** Everything that an audit reads, as it is now. It must be read before the world goes on. */
  facts(): CloudFacts {
    return { cells: this.cells.map((cell) => cell.facts()), api: { requests: this.#store.auditedRequests() } };
  }

  close(): void {
    this.supervisor.close();
    this.#broker.close();
    for (const cell of this.cells) cell.close();
  }

  async #schedule(process: SimProcess): Promise<void> {
    const scheduler = createScheduler(
      {
        store: remote(process, "api-db", this.#mutation?.apiStore?.(this.#store) ?? this.#store),
        bus: this.#bus(process),
        cells: this.cells.map((cell) => {
          const { name, store, operations, bus, view } = cell.fromAbove(process);
          const source = view();
          return { name, store, operations, bus, source, view: source.view, facts: source.facts };
        }),
        moves: remote(process, "api-db", this.#mutation?.moveStore?.(this.#moves) ?? this.#moves),
        groups: remote(process, "api-db", this.#groups),
        reservations: remote(process, "api-db", this.#reservations),
        softState: simSoftState(process, () => this.#softState),
        clock: process.clock,
        logger: this.#world.logger(process.name),
        registry: createRegistry({ service: "scheduler", withProcess: false }),
        tracing: noTracing,
      },
      { ...SCHEDULER_SETTINGS, schedulerId: randomUuidOf(Math.random) },
    );
    await scheduler.start();
  }

  async #serve(process: SimProcess): Promise<void> {
    const api = createApi(
      {
        store: remote(process, "api-db", this.#mutation?.apiStore?.(this.#store) ?? this.#store),
        groups: remote(process, "api-db", this.#groups),
        reservations: remote(process, "api-db", this.#reservations),
        cells: this.cells.map((cell) => {
          const { name, store, bus, admin } = cell.fromAbove(process);
          return { name, store, bus, admin, view: null };
        }),
        images: remote(process, "api-db", this.#images),
        moves: remote(process, "api-db", this.#mutation?.moveStore?.(this.#moves) ?? this.#moves),
        ...(this.keepsDeleted && { softDeletions: remote(process, "api-db", this.#softDeletions) }),
        ...(this.cinder !== null && {
          volumes: remote(process, "api-db", this.#volumes),
          blockStorage: this.cinder.reachedBy(process),
          ...(this.cinder.bootShare > 0 && { glance: simGlanceReachedBy(process) }),
        }),
        ...(this.neutron !== null && {
          ...this.neutron.reachedBy(process),
          portNotes: remote(process, "api-db", this.#portNotes),
        }),
        bus: this.#bus(process),
        policy: POLICY,
        makeHttp: sharedHttp,
        clock: process.clock,
        logger: this.#world.logger(process.name),
        registry: createRegistry({ service: "api", withProcess: false }),
        tracing: noTracing,
      },
      {
        ...API_SETTINGS,
        reclaimInstanceIntervalMs: this.#keepDeletedMs,
        shelvedOffloadTime: this.offloadsAtOnce ? 0 : -1,
        ...settingsOfApi(this),
      },
      simRoutes(this),
    );
    await api.open();
    this.#calls.set(process.name, (call) =>
      callInProcess(api.http, call, this.fillsVolumes ? REBUILDING_HEADERS : HEADERS),
    );
    process.onKill(() => this.#calls.delete(process.name));
  }

  #bus(process: SimProcess) {
    return simBus(process, "api-nats", this.#broker.connect(apiPermissions), this.#world);
  }
}

function named(kind: "api" | "scheduler", count: number, start: (process: SimProcess) => Promise<void>) {
  return Array.from({ length: count }, (_, index) => ({ kind, name: `${kind}-${index + 1}`, start }));
}
