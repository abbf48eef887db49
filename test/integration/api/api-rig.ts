import { randomUUID } from "node:crypto";
import type { InjectOptions, LightMyRequestResponse } from "fastify";
import { pino } from "pino";
import type { ImageDirectory } from "../../../adapters/images/image-directory.ts";
import { MemoryAggregateStore } from "../../../adapters/memory/api/memory-aggregate-store.ts";
import { MemoryApiStore } from "../../../adapters/memory/api/memory-api-store.ts";
import { MemoryConsoleTokenStore } from "../../../adapters/memory/api/memory-console-token-store.ts";
import { MemoryDecisionStore } from "../../../adapters/memory/api/memory-decision-store.ts";
import { MemoryHostMapStore } from "../../../adapters/memory/api/memory-host-map-store.ts";
import { MemoryImageStore } from "../../../adapters/memory/api/memory-image-store.ts";
import { MemoryKeypairStore } from "../../../adapters/memory/api/memory-keypair-store.ts";
import { MemoryMoveStore } from "../../../adapters/memory/api/memory-move-store.ts";
import { MemoryPortNoteStore } from "../../../adapters/memory/api/memory-port-note-store.ts";
import { MemoryPortStore } from "../../../adapters/memory/api/memory-port-store.ts";
import { MemoryQuotaStore } from "../../../adapters/memory/api/memory-quota-store.ts";
import { MemoryReservationStore } from "../../../adapters/memory/api/memory-reservation-store.ts";
import { MemorySecurityGroups } from "../../../adapters/memory/api/memory-security-groups.ts";
import { MemoryServerGroupStore } from "../../../adapters/memory/api/memory-server-group-store.ts";
import { MemorySettingsStore } from "../../../adapters/memory/api/memory-settings-store.ts";
import { MemorySoftDeletionStore } from "../../../adapters/memory/api/memory-soft-deletion-store.ts";
import { MemoryVolumeStore } from "../../../adapters/memory/api/memory-volume-store.ts";
import { MemoryBroker } from "../../../adapters/memory/bus/memory-broker.ts";
import { MemoryCellStore } from "../../../adapters/memory/cell/memory-cell-store.ts";
import { MemoryLedger } from "../../../adapters/memory/cell/memory-ledger.ts";
import { MemoryNetworking } from "../../../adapters/memory/memory-networking.ts";
import { MemorySoftState } from "../../../adapters/memory/memory-soft-state.ts";
import { apiStreams, cellEventsSubject, cellStreams } from "../../../adapters/nats/streams.ts";
import { createRegistry } from "../../../adapters/telemetry/metrics.ts";
import { noTracing } from "../../../adapters/telemetry/tracing.ts";
import { claim, swap } from "../../../core/ledger/allocation-change.ts";
import { consumerUuid } from "../../../core/ledger/ids.ts";
import { LedgerView } from "../../../core/ledger/ledger-view.ts";
import { LiveCellFacts, viewWithFacts } from "../../../core/scheduling/live-cell-facts.ts";
import type { ApiStore } from "../../../core/stores/api/api-store.ts";
import type { LimitSource } from "../../../core/stores/api/limit-source.ts";
import { CellEvent, EventKind, type Task, TaskNotice } from "../../../proto/gen/berth/cell.ts";
import type { Bus, StreamState } from "../../../runtime/bus.ts";
import { withDeadline } from "../../../runtime/deadline.ts";
import type { AuthenticateToken } from "../../../services/api/http/identity.ts";
import type { IsUnknownProject } from "../../../services/api/http/refuse-unknown-project.ts";
import type { GlanceParts } from "../../../services/api/image/open-glance.ts";
import type { Policy } from "../../../services/api/policy/policy.ts";
import { type ApiService, createApi } from "../../../services/api/service.ts";
import { type ApiSettings, DEFAULT_API_SETTINGS } from "../../../services/api/settings.ts";
import { conductorId, hostName, hostTree, owner, providerOf, vcpusOf } from "../../contract/cell-fixtures.ts";
import { FEW_PATHS } from "../../rigs/api-paths.ts";
import { serversToldOf } from "../../rigs/servers-told-of.ts";
import { strictClock } from "../../rigs/strict-clock.ts";
import { collectUndescribed } from "./undescribed-answers.ts";

const CONDUCTOR = conductorId(1);
const HOSTS_PER_CELL = 3;
/** Cells that live answer within this time however busy the machine is, so none of them looks dead. */
const CELLS = { ...DEFAULT_API_SETTINGS.cells, deadlineMs: 60_000, retryMs: 50 };
const clock = strictClock();

/** A cell of the rig: its database, its bus, and methods that act as schedulers and conductors. */
export interface RigCell {
  readonly name: string;
  readonly store: MemoryCellStore;
  readonly ledger: MemoryLedger;
  readonly bus: Bus;
  /** Servers of the tasks that were announced to its conductors. */
  readonly toldConductors: string[];
  /** While this is true its database does not answer, as behind a broken network. */
  dead: boolean;
}

/** The api over in-memory twins, with two cells of three hosts each. The test plays the other services. */
export class ApiRig {
  readonly store: ApiStore;
  readonly cells: ReadonlyMap<string, RigCell>;
  readonly #requests: Pick<ApiStore, "requests"> = { requests: (uuids) => this.store.requests(uuids) };
  readonly api: ApiService;
  readonly operators = new MemoryAggregateStore({ clock });
  readonly hostMap = new MemoryHostMapStore();
  readonly decisions = new MemoryDecisionStore();
  readonly softState = new MemorySoftState(clock);
  readonly moves = new MemoryMoveStore(clock);
  readonly images = new MemoryImageStore(this.#requests);
  readonly quotas: MemoryQuotaStore;
  readonly softDeletions: MemorySoftDeletionStore | null;
  readonly keypairs = new MemoryKeypairStore();
  readonly consoleTokens = new MemoryConsoleTokenStore();
  readonly networkPorts = new MemoryPortStore(clock, { requests: this.#requests });
  readonly portNotes = new MemoryPortNoteStore(clock, { requests: this.#requests });
  readonly networking = new MemoryNetworking({ newId: randomUUID });
  readonly volumes = new MemoryVolumeStore(clock, { requests: this.#requests });
  readonly #brokers: MemoryBroker[] = [];
  readonly #undescribed: ReadonlySet<string>;
  readonly reservations = new MemoryReservationStore({ clock, requests: this.#requests });
  readonly toldSchedulers: string[] = [];
  /** While this is true the API tier's bus accepts nothing. */
  busDown = false;
  /** The state of its streams that the API tier's bus reports. */
  streamState: StreamState = "there";

  private constructor(
    cells: readonly RigCell[],
    brokers: MemoryBroker[],
    apiBus: Bus,
    views: ReadonlyMap<string, { readonly view: LedgerView; readonly facts: LiveCellFacts }>,
    settings: Partial<ApiSettings>,
    store: ApiStore,
    quotas: MemoryQuotaStore,
    keystone: AuthenticateToken | null,
    imageFiles: ImageDirectory | null,
    policy: Policy | null,
    glance: GlanceParts | null,
    limitSource: LimitSource | undefined,
    isUnknownProject: IsUnknownProject | null,
  ) {
    this.store = store;
    this.quotas = quotas;
    this.softDeletions =
      store instanceof MemoryApiStore ? new MemorySoftDeletionStore(clock, { requests: store, quotas }) : null;
    this.cells = new Map(cells.map((cell) => [cell.name, cell]));
    this.#brokers = brokers;
    this.api = createApi(
      {
        store: this.store,
        operators: {
          aggregates: this.operators,
          ratios: this.operators,
          settings: new MemorySettingsStore(),
          hostMap: this.hostMap,
          softState: this.softState,
        },
        groups: new MemoryServerGroupStore({ requests: this.store }),
        reservations: this.reservations,
        decisions: this.decisions,
        images: this.images,
        imageFiles,
        glance,
        moves: this.moves,
        networkPorts: this.networkPorts,
        networking: this.networking,
        floatingIps: this.networking.floatingIps,
        securityGroups: new MemorySecurityGroups(this.networkPorts),
        neutronSecurityGroups: this.networking.securityGroups,
        portNotes: this.portNotes,
        volumes: this.volumes,
        keypairs: this.keypairs,
        consoleTokens: this.consoleTokens,
        quotas: this.quotas,
        limitSource,
        ...(this.softDeletions !== null && { softDeletions: this.softDeletions }),
        cells: cells.map((cell) => ({
          name: cell.name,
          store: mortal(cell, cell.store),
          admin: mortal(cell, cell.store.hostAdmin()),
          bus: listening(cell),
          ...(views.get(cell.name) ?? { view: null }),
        })),
        bus: {
          ensureStreams: (specs) => apiBus.ensureStreams(specs),
          streamState: () => this.streamState,
          publish: (subject, data, options) => {
            if (this.busDown) return Promise.reject(new Error("the bus is down"));
            this.toldSchedulers.push(...serversToldOf(data));
            return apiBus.publish(subject, data, options);
          },
        },
        clock,
        logger: pino({ level: "silent" }),
        registry: createRegistry({ service: "api", withProcess: false }),
        tracing: noTracing,
        ...{ keystone, isUnknownProject },
        ...(policy !== null && { policy }),
      },
      { ...DEFAULT_API_SETTINGS, ...FEW_PATHS, cells: CELLS, ...settings },
    );
    this.#undescribed = collectUndescribed(this.api.http);
  }

  /** `given` is the API database, by default the in-memory twin. The caller closes it. */
  static async start(
    settings: Partial<ApiSettings> = {},
    given: ApiStore | null = null,
    keystone: AuthenticateToken | null = null,
    imageFiles: ImageDirectory | null = null,
    policy: Policy | null = null,
    glance: GlanceParts | null = null,
    limitSource: LimitSource | undefined = undefined,
    isUnknownProject: IsUnknownProject | null = null,
  ): Promise<ApiRig> {
    const quotas = new MemoryQuotaStore({ clock });
    const store = given ?? new MemoryApiStore({ clock, quotas });
    const brokers = [new MemoryBroker(clock)];
    const apiBus = brokers[0]!.connect();
    await apiBus.ensureStreams(apiStreams);
    const cells: RigCell[] = [];
    const views = new Map<string, { readonly view: LedgerView; readonly facts: LiveCellFacts }>();
    for (const [index, name] of ["north", "south"].entries()) {
      const broker = new MemoryBroker(clock);
      brokers.push(broker);
      const bus = broker.connect();
      await bus.ensureStreams(cellStreams(name));
      const ledger = new MemoryLedger();
      const store = new MemoryCellStore({ clock, ledger });
      const view = new LedgerView();
      const facts = new LiveCellFacts(name, view);
      const followed = viewWithFacts(view, facts);
      store.follow((_xid, rows) => followed.applyAll(rows));
      const hosts = Array.from({ length: HOSTS_PER_CELL }, (_, host) => index * HOSTS_PER_CELL + host);
      await ledger.putTrees(hosts.map((host) => hostTree(host, 8)));
      await store.hostsUp(
        `agent-${name}`,
        hosts.map((host) => ({ name: hostName(host), rootProvider: providerOf(host) })),
      );
      await store.renewLease({ id: CONDUCTOR, name: "conductor", leaseMs: 3_600_000 });
      cells.push({ name, store, ledger, bus, toldConductors: [], dead: false });
      views.set(name, { view, facts });
    }
    const rig = new ApiRig(
      cells,
      brokers,
      apiBus,
      views,
      settings,
      store,
      quotas,
      keystone,
      imageFiles,
      policy,
      glance,
      limitSource,
      isUnknownProject,
    );
    for (const { name } of cells) {
      await rig.store.putCell({ name, databaseUrl: "postgres://x", natsUrl: null, disabled: false });
    }
    await rig.store.createFlavor({
      id: "1",
      name: "m1.tiny",
      vcpus: 1,
      ...{ memoryMib: 512, diskGib: 1, ephemeralGib: 0, swapMib: 0 },
      extraSpecs: { "resources:VCPU": "1" },
      rxtxFactor: 1,
      ...{ isPublic: true, description: null },
    });
    await rig.api.start();
    return rig;
  }

  /** Throws if the api has given an answer with a status that its OpenAPI documents do not have for the route. */
  async close(): Promise<void> {
    await this.api.close();
    for (const broker of this.#brokers) broker.close();
    if (this.#undescribed.size > 0)
      throw new Error(`the OpenAPI documents lack statuses: ${[...this.#undescribed].toSorted().join(", ")}`);
  }

  cell(name: string): RigCell {
    const cell = this.cells.get(name);
    if (cell === undefined) throw new Error(`the rig has no cell ${name}`);
    return cell;
  }

  call(options: InjectOptions): Promise<LightMyRequestResponse> {
    return this.api.http.inject(options);
  }

  get(url: string, headers: Record<string, string> = {}): Promise<LightMyRequestResponse> {
    return this.call({ method: "GET", url, headers });
  }

  post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<LightMyRequestResponse> {
    return this.#send("POST", url, body, headers);
  }

  put(url: string, body: unknown, headers: Record<string, string> = {}): Promise<LightMyRequestResponse> {
    return this.#send("PUT", url, body, headers);
  }

  #send(method: "POST" | "PUT", url: string, body: unknown, headers: Record<string, string>) {
    const all = { "content-type": "application/json", ...headers };
    return this.call({ method, url, headers: all, payload: JSON.stringify(body) });
  }

  delete(url: string, headers: Record<string, string> = {}): Promise<LightMyRequestResponse> {
    return this.call({ method: "DELETE", url, headers });
  }

  /** Requests a server and returns its UUID. */
  async boot(server: Record<string, unknown> = {}, headers: Record<string, string> = {}): Promise<string> {
    const answer = await this.post("/v2.1/servers", { server: { name: "web", flavorRef: "1", ...server } }, headers);
    if (answer.statusCode !== 202) throw new Error(answer.body);
    return answer.json().server.id;
  }

  /** Acts as a scheduler: dispatches the server to hosts of a cell and claims the first one. Returns the task. */
  async dispatch(uuid: string, cellName: string, hosts: readonly number[]): Promise<Task> {
    const [record] = await this.store.requests([uuid]);
    if (record === undefined) throw new Error(`no request ${uuid}`);
    await this.store.assignCells([{ serverUuid: uuid, from: record.cell, to: cellName }]);
    const selections = hosts.map((host) => ({
      host: hostName(host),
      rootProvider: providerOf(host),
      availabilityZone: "nova",
      allocation: { items: vcpusOf(host, 1), mappings: {} },
    }));
    const task: Task = {
      id: randomUUID(),
      server: record.spec,
      work: { $case: "build", value: { selections, attemptsMax: 0 } },
    };
    const change = claim(consumerUuid(uuid), owner, vcpusOf(hosts[0] ?? 0, 1));
    const [outcome] = await this.cell(cellName).store.dispatch([{ task, change }]);
    if (outcome?.kind !== "dispatched") throw new Error(`dispatch: ${outcome?.kind}`);
    return task;
  }

  /** Acts as a conductor: takes the task, so that its commits count. */
  async take(cellName: string, task: Task): Promise<{ taskId: string; serverUuid: string; epoch: number }> {
    const [taken] = await this.cell(cellName).store.takeTasks(CONDUCTOR, [task.id]);
    if (taken === undefined) throw new Error("the task was not taken");
    return { taskId: task.id, serverUuid: task.server?.uuid ?? "", epoch: taken.epoch };
  }

  /** The delete tasks that the cell has stored. */
  deleteTasks(cellName: string): readonly Task[] {
    const tasks = this.cell(cellName).store.tasks();
    return tasks.flatMap((row) => (row.kind === "delete" ? row.task : []));
  }

  /** Makes a server that is ACTIVE on the host. */
  async bootActive(
    cellName: string,
    host: number,
    server: Record<string, unknown> = {},
    headers: Record<string, string> = {},
  ): Promise<string> {
    const uuid = await this.boot(server, headers);
    const task = await this.dispatch(uuid, cellName, [host]);
    await this.cell(cellName).store.commitActive([{ ...(await this.take(cellName, task)), selection: 0 }]);
    return uuid;
  }

  /** Acts as a conductor: the first host fails, and the alternate is claimed. */
  async hop(
    cellName: string,
    task: Task,
    to: number,
    reason: string,
  ): Promise<{ taskId: string; serverUuid: string; epoch: number }> {
    const taken = await this.take(cellName, task);
    const change = swap(consumerUuid(taken.serverUuid), owner, vcpusOf(to, 1));
    await this.cell(cellName).store.hop([{ ...taken, from: 0, reason, to: 1, toHost: hostName(to), change }]);
    return taken;
  }

  /** Publishes a conductor's message that the servers are gone. */
  async tellDeleted(cellName: string, ...serverUuids: readonly string[]): Promise<void> {
    const kind = EventKind.EVENT_KIND_SERVER_DELETED;
    const [first, ...more] = serverUuids.map((serverUuid) =>
      CellEvent.create({ kind, cell: cellName, serverUuid, atMs: Date.now() }),
    );
    const message = CellEvent.encode({ ...first!, more }).finish();
    await this.cell(cellName).bus.publish(cellEventsSubject(cellName), message);
  }
}

/** The cell's store. While the cell is dead, its calls do nothing and are given up after a while, as the cell's client would give them up. */
function mortal<Store extends object>(cell: RigCell, of: Store): Store {
  const silence = () => withDeadline(new Promise(() => {}), 50, `cell ${cell.name}`);
  return new Proxy(of, {
    get(store, name) {
      const member = Reflect.get(store, name);
      if (typeof member !== "function") return member;
      return (...args: unknown[]) => (cell.dead ? silence() : member.apply(store, args));
    },
  });
}

/** The cell's bus, which records the messages to the cell. */
function listening(cell: RigCell): Pick<Bus, "publish" | "ask" | "consume" | "ensureStreams"> {
  return {
    ask: (subject, question, options) => cell.bus.ask(subject, question, options),
    ensureStreams: (specs) => cell.bus.ensureStreams(specs),
    publish: (subject, data, options) => {
      const { id, more } = TaskNotice.decode(data);
      const told = cell.store.tasks().filter((task) => [id, ...more].includes(task.id));
      cell.toldConductors.push(...told.map(({ serverUuid }) => serverUuid));
      return cell.bus.publish(subject, data, options);
    },
    consume: (consumer, options, onMessage) => cell.bus.consume(consumer, options, onMessage),
  };
}
