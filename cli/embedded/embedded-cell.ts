import { randomUUID } from "node:crypto";
import type { Pool } from "pg";
import { MemoryBroker } from "../../adapters/memory/memory-bus.ts";
import { MemoryNetwork } from "../../adapters/memory/memory-link.ts";
import { cellPermissionsOfApi, cellStreams, conductorPermissions } from "../../adapters/nats/streams.ts";
import { followerEvents } from "../../adapters/postgres/follower/follower-telemetry.ts";
import { LedgerFollower } from "../../adapters/postgres/follower/ledger-follower.ts";
import { createPool } from "../../adapters/postgres/pool.ts";
import { PostgresCellStore } from "../../adapters/postgres/postgres-cell-store.ts";
import { PostgresHostAdminStore } from "../../adapters/postgres/postgres-host-admin-store.ts";
import { PostgresLedger } from "../../adapters/postgres/postgres-ledger.ts";
import { createRegistry } from "../../adapters/telemetry/metrics.ts";
import { noTracing } from "../../adapters/telemetry/tracing.ts";
import type { RunningGuest } from "../../core/audit/facts.ts";
import type { CellStore } from "../../core/cell/cell-store.ts";
import type { HostAdminStore } from "../../core/cell/host-admin-store.ts";
import { LedgerView } from "../../core/ledger/view.ts";
import { LiveCellFacts, viewWithFacts } from "../../core/scheduling/live-cell-facts.ts";
import type { Bus } from "../../runtime/bus.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import type { Service } from "../../runtime/service.ts";
import { FakeDriver } from "../../services/compute-agent/fake-driver.ts";
import type { HostConfig } from "../../services/compute-agent/host-config.ts";
import type { Journal } from "../../services/compute-agent/journal.ts";
import { type ComputeAgent, createComputeAgent } from "../../services/compute-agent/service.ts";
import { createConductor } from "../../services/conductor/service.ts";
import { CONDUCTOR_DEFAULTS } from "../../services/conductor/settings.ts";
import { type CloudObserver, observeCellStore } from "./observe-stores.ts";

export interface EmbeddedCellOptions {
  readonly name: string;
  readonly databaseUrl: string;
  readonly hosts: readonly HostConfig[];
  readonly conductors: number;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly observer: CloudObserver | null;
  /** A part cannot go on. */
  readonly fail: (error: unknown) => void;
}

/** A cell of a cloud in one process, with what the API tier has of it. */
export interface EmbeddedCell extends Service {
  readonly name: string;
  readonly databaseUrl: string;
  /** The API tier's own way in; conductors have another. */
  readonly store: CellStore;
  readonly admin: HostAdminStore;
  readonly bus: Bus;
  readonly view: LedgerView;
  readonly facts: LiveCellFacts;
  readonly follower: LedgerFollower;
  /** Every host's tree is in the ledger. */
  readonly ready: boolean;
  /** What really runs on the hosts. */
  runningGuests(): ReadonlyMap<string, readonly RunningGuest[]>;
}

/** Builds a cell on a migrated database: its streams, its conductors, one agent that carries all of its hosts, and a view of it. */
export function createEmbeddedCell(options: EmbeddedCellOptions): EmbeddedCell {
  const { name, databaseUrl, clock, logger } = options;
  const broker = new MemoryBroker(clock);
  const above = openSide(options, "berth api tier");
  const below = openSide(options, "berth conductors");
  const view = new LedgerView();
  const facts = new LiveCellFacts(name, view);
  const follower = new LedgerFollower({
    ...{ cell: name, databaseUrl, view: viewWithFacts(view, facts), servers: true },
    ...{ clock, events: followerEvents(logger) },
  });
  const bus = broker.connect(cellPermissionsOfApi(name));
  const network = new MemoryNetwork();
  const addresses = Array.from({ length: options.conductors }, (_, index) => `${name}-conductor-${index + 1}`);
  const conductors = addresses.map((address) =>
    createConductor(
      {
        store: below.store,
        ledger: new PostgresLedger(below.pool),
        bus: broker.connect(conductorPermissions(name)),
        listener: network.listen(address),
        clock,
        logger: logger.child({ conductor: address }),
        registry: createRegistry({ service: "conductor", withProcess: false }),
        tracing: noTracing,
      },
      { ...CONDUCTOR_DEFAULTS, cell: name, conductorId: randomUUID(), name: address },
    ),
  );
  const { agent, driver } = createAgent(options, network, addresses);
  return {
    name,
    databaseUrl,
    store: above.store,
    admin: new PostgresHostAdminStore(above.pool),
    bus,
    view,
    facts,
    follower,
    get ready() {
      return agent.ready;
    },
    runningGuests: () => runningGuestsOf(options.hosts, driver),
    async start() {
      follower.start();
      await bus.ensureStreams(cellStreams(name));
      for (const conductor of conductors) await conductor.start();
      await agent.start();
    },
    async close() {
      await agent.close();
      await Promise.all(conductors.map((conductor) => conductor.close()));
      await follower.close();
      broker.close();
      await Promise.all([above.pool.end(), below.pool.end()]);
    },
  };
}

function openSide(
  options: EmbeddedCellOptions,
  applicationName: string,
): { readonly pool: Pool; readonly store: CellStore } {
  const pool = createPool({ url: options.databaseUrl, applicationName, connectionsMax: CONNECTIONS_MAX });
  const store = new PostgresCellStore(pool);
  return { pool, store: options.observer === null ? store : observeCellStore(store, options.observer) };
}

/** Each connection compiles the cell's functions for itself, and batches grow while they wait for one: few are faster than many. */
const CONNECTIONS_MAX = 2;

function createAgent(
  options: EmbeddedCellOptions,
  network: MemoryNetwork,
  conductors: readonly string[],
): { readonly agent: ComputeAgent; readonly driver: FakeDriver } {
  const { clock, hosts } = options;
  const logger = options.logger.child({ agent: options.name });
  const driver = new FakeDriver({
    clock,
    seed: 1,
    scripts: new Map(hosts.flatMap((host) => (host.fake === undefined ? [] : [[host.name, host.fake] as const]))),
    crash: () => options.fail(new Error("the fake driver was told to crash its agent, and this process is its agent")),
    loseConnections: () => agent.loseConnections(),
  });
  const agent = createComputeAgent(
    {
      dialer: network.dialer(),
      journal: options.journal,
      driver,
      clock,
      logger,
      registry: createRegistry({ service: "compute-agent", withProcess: false }),
      tracing: noTracing,
      fail: options.fail,
    },
    { agentId: `${options.name}-agent`, conductors, hosts, buildLimit: 10 },
  );
  return { agent, driver };
}

function runningGuestsOf(
  hosts: readonly HostConfig[],
  driver: FakeDriver,
): ReadonlyMap<string, readonly RunningGuest[]> {
  const guests = new Map<string, RunningGuest[]>(hosts.map((host) => [host.name, []]));
  for (const { host, serverUuid, attemptId, running } of driver.guests()) {
    if (running) guests.get(host)?.push({ serverUuid, attemptId });
  }
  return guests;
}
