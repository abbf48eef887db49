import { MemoryBroker } from "../adapters/memory/bus/memory-broker.ts";
import { MemoryCellStore } from "../adapters/memory/cell/memory-cell-store.ts";
import type { MemoryLedger } from "../adapters/memory/cell/memory-ledger.ts";
import { cellPermissionsOfApi, cellStreams, conductorPermissions } from "../adapters/nats/streams.ts";
import { createRegistry } from "../adapters/telemetry/metrics.ts";
import { noTracing } from "../adapters/telemetry/tracing.ts";
import type { CellReading } from "../core/audit/facts.ts";
import { capacityOf } from "../core/ledger/model.ts";
import type { RowChange } from "../core/ledger/row-change.ts";
import { destinationOf, factsOf } from "../core/tasks/operation-facts.ts";
import { attemptIdOf, type Server } from "../core/tasks/server.ts";
import type { FakeGuest } from "../services/compute-agent/fake-guest.ts";
import type { HostConfig } from "../services/compute-agent/host-config.ts";
import { createConductor } from "../services/conductor/service.ts";
import { CONDUCTOR_DEFAULTS } from "../services/conductor/settings.ts";
import { randomUuidOf } from "./determinism.ts";
import type { GuestWithVolumes } from "./known-servers.ts";
import type { CellKnowledge } from "./lies.ts";
import { ledgerOf } from "./mutated-ledger.ts";
import type { Mutation } from "./mutations.ts";
import { simBus } from "./sim-bus.ts";
import { SimHosts } from "./sim-hosts.ts";
import { SimLinks } from "./sim-links.ts";
import { clientsOfConductor, type SimNeighbours, settingsOfConductor } from "./sim-neighbours.ts";
import { remote, type SimProcess } from "./sim-process.ts";
import { SimView } from "./sim-view.ts";
import type { DriverHabits } from "./slow-driver.ts";
import type { Slot } from "./supervisor.ts";
import type { World } from "./world.ts";

/** Maximum number of hosts that one agent carries, and the number of agents in a cell that has enough hosts. */
const HOSTS_OF_AGENT_MAX = 10;
const AGENTS_MIN = 3;

/** Number of hosts that a conductor compares with the database in a second. It is low because few simulated cells have ten hosts. */
const AUDITED_HOSTS_PER_SECOND = 1;

/** A guest of a server, whether or not the databases know of it. */
export interface CopyOfServer {
  readonly host: string;
  readonly attemptId: string;
  readonly running: boolean;
}

/** A cell of a simulated cloud: what outlives processes (database, broker, hypervisors), and how its processes are started. */
export class SimCell {
  readonly name: string;
  /** Called when rows have changed that an audit looks at. */
  onChange: () => void = () => {};
  readonly #world: World;
  readonly #mutation: Mutation | null;
  readonly #neighbours: SimNeighbours;
  readonly #store: MemoryCellStore;
  readonly #ledger: MemoryLedger;
  readonly #broker: MemoryBroker;
  readonly #links: SimLinks;
  readonly #hosts: readonly SimHosts[];
  readonly #conductors: readonly string[];
  /** The share of the transactions that find no space on the database's disk, from 0 to 1. */
  #fullShare = 0;
  #isTrue = true;

  constructor(
    world: World,
    options: {
      readonly name: string;
      readonly hosts: readonly HostConfig[];
      readonly conductors: number;
      readonly mutation: Mutation | null;
      readonly neighbours: SimNeighbours;
      readonly habits: DriverHabits;
    },
  ) {
    const { name, hosts, mutation, habits } = options;
    this.name = name;
    this.#world = world;
    this.#mutation = mutation;
    this.#neighbours = options.neighbours;
    this.#ledger = ledgerOf(mutation);
    this.#store = new MemoryCellStore({ clock: world.clock, ledger: this.#ledger });
    this.#broker = new MemoryBroker(world.clock);
    this.#links = new SimLinks(world);
    this.#conductors = Array.from({ length: options.conductors }, (_, index) => `${name}-conductor-${index + 1}`);
    const of = { mutation, habits, knowledge: () => this.#knowledge(), share: options.neighbours.cinder?.share };
    const ofAgent = Math.min(HOSTS_OF_AGENT_MAX, Math.ceil(hosts.length / AGENTS_MIN));
    this.#hosts = Array.from(
      { length: Math.ceil(hosts.length / ofAgent) },
      (_, index) =>
        new SimHosts(
          world,
          { ...of, name: `${name}-agent-${index + 1}` },
          hosts.slice(index * ofAgent, (index + 1) * ofAgent),
        ),
    );
    const draw = world.random(`${name}-disk`);
    this.#ledger.isFull = () => this.#fullShare > 0 && draw() < this.#fullShare;
    this.#ledger.onTransaction((_, rows) => {
      this.#checkRows(rows);
      this.onChange();
    });
  }

  get databasePlace(): string {
    return `${this.name}-db`;
  }

  get brokerPlace(): string {
    return `${this.name}-nats`;
  }

  /** Sets up what an operator sets up before any process starts. */
  async open(): Promise<void> {
    await this.#broker.connect(cellPermissionsOfApi(this.name)).ensureStreams(cellStreams(this.name));
  }

  /** The cell as a process of the API tier reaches it. */
  fromAbove(process: SimProcess) {
    const { network } = this.#world;
    const store = this.#mutated(this.#store);
    return {
      name: this.name,
      store: remote(process, this.databasePlace, store),
      bus: simBus(process, this.brokerPlace, this.#broker.connect(cellPermissionsOfApi(this.name)), this.#world),
      operations: remote(process, this.databasePlace, store),
      admin: remote(process, this.databasePlace, store.hostAdmin()),
      view: () => new SimView(process, { name: this.name, place: this.databasePlace, store: this.#store }, network),
    };
  }

  slots(): Slot[] {
    return [
      ...this.#conductors.map((name) => ({
        kind: "conductor" as const,
        name,
        start: (p: SimProcess) => this.#conduct(p),
      })),
      ...this.#hosts.map((hosts) => ({
        kind: "agent" as const,
        name: hosts.name,
        start: (process: SimProcess) => hosts.start(process, this.#links, this.#conductors),
      })),
    ];
  }

  /** The servers that are held up by a guest in quarantine, about which an operator has to decide. */
  async undecided(): Promise<readonly string[]> {
    const guests = await this.#store.quarantine.quarantined();
    return guests.flatMap(({ serverUuid, holds, condemned }) => (holds && !condemned ? [serverUuid] : []));
  }

  /** The servers that have a guest in rescue mode. */
  rescued(): readonly string[] {
    return this.#hosts.flatMap((hosts) => hosts.guests().flatMap((guest) => (guest.rescued ? [guest.serverUuid] : [])));
  }

  /** Everything that an audit reads from a cell, as it is now. It must be read before the world goes on, since the ledger's rows are no copies. */
  facts(): CellReading {
    const facts = this.copyFacts();
    const runningGuests = new Map(
      [...facts.copies].map(([host, guests]) => [host, guests.filter(({ running }) => running)]),
    );
    const kept = this.#ledger.reports.kept();
    return { ...facts, ledger: this.#ledger.present(), kept, runningGuests };
  }

  /** The present input of the audit of law 6. */
  copyFacts() {
    const copies = new Map<string, FakeGuest[]>();
    for (const hosts of this.#hosts) {
      for (const { name } of hosts.hosts) copies.set(name, []);
      for (const guest of hosts.guests()) copies.get(guest.host)?.push(guest);
    }
    return { ...this.#store.facts(), cell: this.name, copies };
  }

  /** The present state of a server, or null when it is not in this cell. */
  look(uuid: string): Server | null {
    return this.#store.look(uuid);
  }

  /** The guests of the server on any host. */
  copiesOf(serverUuid: string): CopyOfServer[] {
    return this.#hosts.flatMap((hosts) => hosts.guests()).filter((guest) => guest.serverUuid === serverUuid);
  }

  /** The guests on all hosts, with the volumes that they have. */
  guestsWithVolumes(): readonly GuestWithVolumes[] {
    return this.#hosts.flatMap((hosts) =>
      hosts.guests().map(({ volumes = [], files = {}, ...guest }) => ({ ...guest, volumes, files })),
    );
  }

  /** Every task that was ever stored. */
  get tasks(): ReturnType<MemoryCellStore["tasks"]> {
    return this.#store.tasks();
  }

  /** Whether the database was never restored to an earlier moment, so that its rows can be relied on. */
  get isTrue(): boolean {
    return this.#isTrue;
  }

  /** The server of each open task. */
  serversAtWork(): readonly string[] {
    return this.#store.serversWithOpenTasks();
  }

  /** Whether nothing is under way in the cell, according to its rows. */
  get isQuiet(): boolean {
    return this.serversAtWork().length === 0;
  }

  /**
   * Backs up the database. Returns a function that restores it, with a new incarnation, and resolves with the servers that run at that
   * moment.
   */
  backUp(): () => Promise<readonly string[]> {
    const putBack = this.#store.remember();
    return async () => {
      putBack();
      this.#isTrue = false;
      await this.#store.quarantine.renewIncarnation();
      return this.#hosts.flatMap((hosts) => hosts.running()).map(({ guest }) => guest.serverUuid);
    };
  }

  /** Fills the disk of its database. Small writes still find room in pages that exist, so only a share of the transactions fails. */
  fillDisk(share: number): void {
    this.#fullShare = share;
  }

  /** Names of its conductors. */
  get conductors(): readonly string[] {
    return this.#conductors;
  }

  /** Hosts on which the server runs now. */
  homesOf(serverUuid: string): string[] {
    return this.copiesOf(serverUuid).flatMap(({ host, running }) => (running ? [host] : []));
  }

  /** Harms the hosts that an agent carries. Returns what `harm` returns: the names of hosts, or the servers concerned. */
  harm(agent: string, harm: (hosts: SimHosts) => readonly string[]): string[] {
    return this.#hosts.flatMap((hosts) => (hosts.name === agent ? harm(hosts) : []));
  }

  /** Ends one of the running guests without an order. Returns its server, or null when no guest runs. */
  endGuest(draw: number, by: "shut-down" | "crashed"): string | null {
    const running = this.#hosts.flatMap((hosts) => hosts.running().map(({ host, guest }) => ({ hosts, host, guest })));
    const one = running[draw % Math.max(running.length, 1)];
    if (one === undefined || !one.hosts.endGuest({ host: one.host, ...one.guest }, by)) return null;
    return one.guest.serverUuid;
  }

  /** Names of the hosts that an agent carries. */
  hostsOf(agent: string): string[] {
    return this.#hosts.flatMap(({ name, hosts }) => (name === agent ? hosts.map((host) => host.name) : []));
  }

  fence(host: string, isFenced: boolean): void {
    this.#hosts.find(({ hosts }) => hosts.some(({ name }) => name === host))?.fence(host, isFenced);
  }

  /** Names of hosts without power. */
  darkHosts(): string[] {
    return this.#hosts.flatMap((hosts) => (hosts.isDark ? hosts.hosts.map(({ name }) => name) : []));
  }

  /** Lets an agent lie for a while. */
  lie(agent: string, forMs: number): void {
    this.#hosts.find(({ name }) => name === agent)?.liar.lie(forMs);
  }

  /** Makes all agents honest again. An operator then decides about the guests that lies have put into quarantine: none of them exists. */
  async endLies(): Promise<void> {
    for (const { liar } of this.#hosts) liar.repent();
    if (!this.#hosts.some(({ liar }) => liar.hasLied)) return;
    await this.#checkInvented();
    await this.#store.quarantine.condemn(null);
  }

  /** A lying agent can hold up only servers that were ever to be on its own hosts. */
  async #checkInvented(): Promise<void> {
    const liars = this.lyingHosts();
    for (const { host, serverUuid, holds, condemned } of await this.#store.quarantine.quarantined()) {
      if (!holds || condemned || !liars.includes(host) || this.look(serverUuid)?.host === host) continue;
      const attempts = await this.#store.attempts(serverUuid);
      if (!attempts.some((attempt) => attempt.host === host))
        this.#world.find(5, `${host}, whose agent lies, holds up server ${serverUuid} by a guest that it invented`);
    }
  }

  /** Names of the hosts whose agent has ever lied. */
  lyingHosts(): readonly string[] {
    return this.#hosts.flatMap(({ liar, hosts }) => (liar.hasLied ? hosts.map(({ name }) => name) : []));
  }

  /**
   * Whether a lying agent was ever told to build a guest of the server, or has its home: an agent may report the guest of a build that is on
   * its way to it.
   */
  isInLiarsHands(serverUuid: string): boolean {
    if (this.#hosts.some(({ liar }) => liar.hasLied && liar.built.has(serverUuid))) return true;
    return this.lyingHosts().includes(this.look(serverUuid)?.host ?? "");
  }

  /** Describes what is wrong with allocations and with guests left on hosts when nothing is under way. */
  async remains(): Promise<string[]> {
    const { servers, moves } = this.#store.facts();
    const moving = new Set(moves.flatMap((move) => (move.inFlight ? [move.serverUuid] : [])));
    const living = servers.filter(({ status, host }) => status !== "DELETED" && host !== null).map(({ uuid }) => uuid);
    const records = await this.#store.servers(living);
    const holdings = await this.#store.holdings(living);
    const misheld = records.flatMap(({ uuid, status, spec }, index) => {
      const held = holdings[index]?.items.find(({ resourceClass }) => resourceClass === "VCPU")?.amount;
      const wanted = spec.flavor?.vcpus;
      // A lie about a later order breaks a move off, which then keeps all its allocations, as if the database had lost commits.
      if (status === "ERROR" && moving.has(uuid) && this.isInLiarsHands(uuid)) return [];
      return held === wanted ? [] : [`server ${uuid} is ${status}, has ${wanted} VCPUs and holds ${held}`];
    });
    const alive = new Set(living);
    const guests = this.#hosts.flatMap((hosts) => hosts.guests());
    const left = guests
      .filter(({ serverUuid }) => !alive.has(serverUuid))
      .map(({ host, serverUuid }) => `${host} keeps a guest of ${serverUuid}, which is nowhere`);
    return [...misheld, ...left];
  }

  close(): void {
    this.#broker.close();
  }

  #knowledge(): CellKnowledge {
    const { servers, moves, hosts } = this.#store.facts();
    const atHome = servers.flatMap(({ uuid, host, attemptId }) =>
      host !== null && attemptId !== null ? [{ host, serverUuid: uuid, attemptId }] : [],
    );
    const arriving = moves.map(({ serverUuid, destHost, destAttemptId }) => ({
      ...{ host: destHost, serverUuid, attemptId: destAttemptId },
    }));
    return { hosts, guests: [...atHome, ...arriving], awaited: this.#awaited() };
  }

  /** The guests about which the open tasks may ask a host now. */
  #awaited(): CellKnowledge["awaited"] {
    return this.tasks.flatMap(({ id, serverUuid, task, selection, step, outcome }) => {
      if (outcome !== null) return [];
      const orderId = `${id}/${step * 2}`;
      if (task.work?.$case === "operate") {
        const facts = factsOf(task);
        const places = [facts.source, destinationOf(facts, selection)].filter((place) => place !== null);
        return places.map(({ host, attemptId }) => ({ host, serverUuid, attemptId, orderId }));
      }
      const selected = task.work?.$case === "build" ? task.work.value.selections[selection]?.host : undefined;
      const host = selected ?? this.#store.look(serverUuid)?.host ?? null;
      return host === null ? [] : [{ host, serverUuid, attemptId: attemptIdOf(id, selection), orderId }];
    });
  }

  async #conduct(process: SimProcess): Promise<void> {
    const bus = this.#broker.connect(conductorPermissions(this.name));
    const place = this.databasePlace;
    const listener = this.#links.listen(process, process.name);
    const conductor = createConductor(
      {
        store: remote(process, place, this.#mutated(this.#store)),
        ledger: remote(process, place, this.#ledger),
        ...clientsOfConductor(this.#neighbours, process),
        bus: simBus(process, this.brokerPlace, bus, this.#world),
        listener: this.#mutation?.listener?.(listener) ?? listener,
        clock: process.clock,
        logger: this.#world.logger(process.name),
        registry: createRegistry({ service: "conductor", withProcess: false }),
        tracing: noTracing,
      },
      {
        ...CONDUCTOR_DEFAULTS,
        ...settingsOfConductor(this.#neighbours),
        auditHostsPerSecond: AUDITED_HOSTS_PER_SECOND,
        cell: this.name,
        conductorId: randomUuidOf(Math.random),
        name: process.name,
      },
    );
    await conductor.start();
  }

  #mutated(store: MemoryCellStore): MemoryCellStore {
    return this.#mutation?.cellStore?.(store) ?? store;
  }

  /** Checks law 1 at every moment: no transaction may leave more in use than there is. */
  #checkRows(rows: readonly RowChange[]): void {
    for (const row of rows) {
      if (row.kind !== "inventory-put" || row.used <= capacityOf(row.inventory)) continue;
      const what = `${row.used} of ${capacityOf(row.inventory)} ${row.resourceClass} of ${row.provider} are in use`;
      this.#world.find(1, `cell ${this.name}: ${what}`);
    }
  }
}
