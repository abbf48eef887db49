import { ConsoleListener } from "../adapters/consoles/console-listener.ts";
import { MemoryNetwork } from "../adapters/memory/memory-network.ts";
import { PostgresCellStore } from "../adapters/postgres/cell/postgres-cell-store.ts";
import { createPool } from "../adapters/postgres/client/pool.ts";
import { PostgresLedger } from "../adapters/postgres/ledger/postgres-ledger.ts";
import { createRegistry } from "../adapters/telemetry/metrics.ts";
import { noTracing } from "../adapters/telemetry/tracing.ts";
import type { RunningGuest } from "../core/audit/facts.ts";
import type { BlockStorage } from "../core/stores/block-storage.ts";
import type { Networking } from "../core/stores/networking.ts";
import type { Bus } from "../runtime/bus.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { Service } from "../runtime/service.ts";
import { FakeDriver } from "../services/compute-agent/fake-driver.ts";
import type { FakeScript } from "../services/compute-agent/fake-script.ts";
import type { HostConfig } from "../services/compute-agent/host-config.ts";
import type { GuestName, Journal } from "../services/compute-agent/journal.ts";
import { machineBootedAtMs } from "../services/compute-agent/machine-booted-at.ts";
import type { OwnedDriver } from "../services/compute-agent/open-driver.ts";
import { type ComputeAgent, createComputeAgent } from "../services/compute-agent/service.ts";
import { CellConductors } from "./cell-conductors.ts";
import type { BreakableCell } from "./cloud-faults.ts";
import { HostAgents } from "./host-agents.ts";
import { type CloudObserver, observeCellStore } from "./observe-stores.ts";

/** The parts that a cell consists of. */
export interface CellPlan {
  readonly name: string;
  readonly databaseUrl: string;
  readonly hosts: readonly HostConfig[];
  readonly conductors: number;
  /** Whether its parts can be broken on purpose: each host then has an agent of its own, as far as conductors see. */
  readonly breakable: boolean;
}

export interface CellServicesOptions extends CellPlan {
  readonly journal: Journal;
  /** A connection to the cell's bus for each conductor. */
  readonly connectBus: () => Bus;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly observer: CloudObserver | null;
  /** Cinder, if servers have volumes there. */
  readonly blockStorage?: BlockStorage | undefined;
  /** Neutron, if servers have ports there. */
  readonly networking?: Networking | undefined;
  /** Whether clients on this machine can open the consoles of guests. */
  readonly consoles?: boolean;
  /** Opens the driver of the cell's hosts; the fake one when it is absent. */
  readonly openDriver?: ((hosts: readonly HostConfig[]) => OwnedDriver) | undefined;
  /** Called when a part cannot continue. */
  readonly fail: (error: unknown) => void;
}

/** The services inside a cell: its conductors, and one agent that carries all of its hosts. */
export interface CellServices extends Service {
  /** Whether every host's tree is in the ledger. */
  readonly ready: boolean;
  /** The guests that really run on the hosts. */
  runningGuests(): Promise<ReadonlyMap<string, readonly RunningGuest[]>>;
  /** The parts that can be broken; null when none can, or they run in another thread. */
  readonly faults: Omit<BreakableCell, "name" | "link"> | null;
  /** All guests on the hosts, running or not. */
  copies(): Promise<ReadonlyMap<string, readonly RunningGuest[]>>;
}

/**
 * Each connection compiles the cell's functions separately, and batches grow while they wait for a connection, so few connections are
 * faster than many.
 */
export const CONNECTIONS_MAX = 2;
const ON_LOOPBACK = { listen: { host: "127.0.0.1", port: 0 }, advertised: null };

/** Builds a cell's own services on a migrated database. The streams of the bus must exist when the services start. */
export function createCellServices(options: CellServicesOptions): CellServices {
  const { name, databaseUrl, clock, logger, observer } = options;
  const pool = createPool({ url: databaseUrl, applicationName: "berth conductors", connectionsMax: CONNECTIONS_MAX });
  const store = new PostgresCellStore(pool);
  const network = new MemoryNetwork();
  const addresses = Array.from({ length: options.conductors }, (_, index) => `${name}-conductor-${index + 1}`);
  const conductors = new CellConductors({
    ...{ cell: name, names: addresses, network, connectBus: options.connectBus, clock, logger },
    ...(options.blockStorage !== undefined && { blockStorage: options.blockStorage }),
    ...(options.networking !== undefined && { networking: options.networking }),
    ...{ store: observeCellStore(store, observer), ledger: new PostgresLedger(pool) },
  });
  const consoles = options.consoles === true ? new ConsoleListener({ clock, ...ON_LOOPBACK }) : null;
  const { agent, driver, agents, scripts } = createAgent(options, network, addresses, consoles);
  return {
    get ready() {
      return agent.ready;
    },
    runningGuests: () => guestsOf(options.hosts, driver, ({ running }) => running),
    copies: () => guestsOf(options.hosts, driver, () => true),
    faults: options.breakable ? { hosts: options.hosts, conductors, agents, scripts } : null,
    async start() {
      await conductors.start();
      await consoles?.start();
      await agent.start();
    },
    async close() {
      await agent.close();
      await consoles?.close();
      driver.close();
      await conductors.close();
      await pool.end();
    },
  };
}

function createAgent(
  options: CellServicesOptions,
  network: MemoryNetwork,
  conductors: readonly string[],
  consoles: ConsoleListener | null,
) {
  const { clock, hosts } = options;
  const logger = options.logger.child({ agent: options.name });
  const scripts = new Map(hosts.flatMap((host) => (host.fake === undefined ? [] : [[host.name, host.fake] as const])));
  const agentId = `${options.name}-agent`;
  const loseConnections = () => agent.loseConnections();
  const names = hosts.map(({ name }) => name);
  const agents = new HostAgents(network.dialer(), { agentId, hosts: names, loseConnections });
  const driver = options.openDriver?.(hosts) ?? openFakeDriver(options, scripts, loseConnections);
  const agent: ComputeAgent = createComputeAgent(
    {
      dialer: options.breakable ? agents.dialer() : network.dialer(),
      journal: options.journal,
      driver: driver.driver,
      clock,
      logger,
      registry: createRegistry({ service: "compute-agent", withProcess: false }),
      tracing: noTracing,
      consoles,
      fail: options.fail,
    },
    { agentId, conductors, hosts, buildLimit: 10, bootedAtMs: machineBootedAtMs(clock.now()) },
  );
  return { agent, driver, agents, scripts };
}

function openFakeDriver(
  { clock, fail }: CellServicesOptions,
  scripts: ReadonlyMap<string, FakeScript>,
  loseConnections: () => void,
): OwnedDriver {
  const driver = new FakeDriver({
    clock,
    seed: 1,
    scripts,
    byMetadata: true,
    crash: () => fail(new Error("the fake driver was told to crash its agent, and this process is its agent")),
    loseConnections,
  });
  return { driver, guests: async () => driver.guests(), close: () => undefined };
}

async function guestsOf(
  hosts: readonly HostConfig[],
  driver: OwnedDriver,
  isMeant: (guest: GuestName & { readonly running: boolean }) => boolean,
): Promise<ReadonlyMap<string, readonly RunningGuest[]>> {
  const guests = new Map<string, RunningGuest[]>(hosts.map((host) => [host.name, []]));
  for (const { host, serverUuid, attemptId } of (await driver.guests()).filter(isMeant))
    guests.get(host)?.push({ serverUuid, attemptId });
  return guests;
}
