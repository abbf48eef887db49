import type { Registry } from "prom-client";
import { isUnavailable } from "../../adapters/postgres/client/run-stored.ts";
import type { Tracing } from "../../adapters/telemetry/tracing.ts";
import type { AgentListener } from "../../core/agent/link.ts";
import type { BlockStorage } from "../../core/stores/block-storage.ts";
import type { ServerAttempt } from "../../core/stores/cell/quarantine.ts";
import type { Networking } from "../../core/stores/networking.ts";
import type { FoundGuest } from "../../core/tasks/guest-fate.ts";
import type { HandOffProgress } from "../../proto/gen/berth/agent.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Closable } from "../../runtime/closable.ts";
import { closeOnce } from "../../runtime/close-once.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import type { Logger } from "../../runtime/logger.ts";
import { Patience } from "../../runtime/patience.ts";
import type { Service } from "../../runtime/service.ts";
import { type AgentConnection, AgentRegistry, type AgentReport } from "./agent-registry.ts";
import { AgentWatch } from "./agent-watch.ts";
import { ConsoleAsker } from "./console-asker.ts";
import { EventPublisher } from "./event-publisher.ts";
import { ConductorEvents } from "./events.ts";
import { FencedRelease } from "./fenced-release.ts";
import { GuestComparer } from "./guest-comparer.ts";
import { type FoundKnowledge, GuestJudge } from "./guest-judge.ts";
import { GuestLooker } from "./guest-looker.ts";
import { GuestSettler } from "./guest-settler.ts";
import { HomePorts } from "./home-ports.ts";
import { HostHolders } from "./host-holders.ts";
import { InterfaceCompleter } from "./interface-completer.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import { NeighbourNeeds } from "./neighbour-needs.ts";
import { OrphanFinder } from "./orphan-finder.ts";
import type { ConductorBus, ConductorLedger, ConductorStore } from "./ports.ts";
import { ResizeConfirmer } from "./resize-confirmer.ts";
import { ServerStopper } from "./server-stopper.ts";
import type { ConductorSettings } from "./settings.ts";
import { SnapshotResumer } from "./snapshot-resumer.ts";
import { StepCommitter } from "./step-committer.ts";
import { TaskIntake } from "./task-intake.ts";
import { TaskReleaser } from "./task-releaser.ts";
import { TaskRuns } from "./task-runs.ts";
import { TransferRecorder } from "./transfer-recorder.ts";
import { TreeKeeper } from "./tree-keeper.ts";

/**
 * The conductor's dependencies, none of which reaches above the cell (law 3). The service closes the listener, and the caller closes the
 * others.
 */
export interface ConductorDeps {
  readonly store: ConductorStore;
  readonly ledger: ConductorLedger;
  readonly bus: ConductorBus;
  readonly listener: AgentListener & Closable;
  /** Neutron, if servers have ports there. It is a neighbour of the cell and no part of the API tier. */
  readonly networking?: Networking;
  /** Cinder, if servers have volumes there. It is a neighbour, too. */
  readonly blockStorage?: BlockStorage;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly registry: Registry;
  readonly tracing: Tracing;
}

/**
 * Maximum time that a close waits for each of its parts: the work under way, giving up the lease, and the watch of the hosts and of their ports. A statement
 * waits up to 35 s for a database that does not answer, which is longer than the time that a process has to end. NATS takes up to 2 s to send what it had begun
 * to send.
 */
const CLOSE_PARTS_MS = { work: 2_300, lease: 1_000, watch: 1_000 };

export interface Conductor extends Service {
  /** True while the conductor holds its lease and takes tasks. */
  readonly ready: boolean;
  /** Number of tasks in progress. */
  readonly taskCount: number;
}

/** Creates one conductor of a cell. It takes the cell's tasks and carries them out with the agents that are connected to it. */
export function createConductor(deps: ConductorDeps, settings: ConductorSettings): Conductor {
  const stop = new AbortController();
  const events = new ConductorEvents({
    logger: deps.logger,
    registry: deps.registry,
    clock: deps.clock,
    taskCount: () => parts.runs.size,
  });
  const parts = assemble(deps, settings, events, stop.signal);
  const patience = new Patience({ logger: deps.logger, isTransient: isUnavailable, clock: deps.clock });
  let ready = false;
  /** Waits for parts that are ending, but not for a server that accepts calls and does not answer in time. */
  const unlessSilent = (part: keyof typeof CLOSE_PARTS_MS, ending: readonly Promise<void>[]) =>
    withDeadline(Promise.all(ending), CLOSE_PARTS_MS[part], part, deps.clock).catch((error: unknown) => {
      if (!(error instanceof DeadlineError)) throw error;
      events.closedWithout(part);
    });
  const close = closeOnce(async () => {
    ready = false;
    patience.giveUp();
    await unlessSilent("work", [
      ...[parts.intake.stop(), parts.consoles.stop()],
      ...[parts.confirmer.stop(), parts.orphans.stop(), parts.fenced.stop()],
    ]);
    stop.abort();
    parts.runs.abandonAll();
    parts.transfers.stop();
    await unlessSilent("lease", [parts.lease.stop()]);
    // Closing the streams first rejects everything that the watch still waits for.
    parts.registry.close();
    await unlessSilent("watch", [parts.watch.stop(), parts.ports.stop(), parts.interfaces.stop()]);
    await deps.listener.close();
  });
  return {
    get ready() {
      return ready && parts.intake.subscribed;
    },
    get taskCount() {
      return parts.runs.size;
    },
    async start() {
      try {
        await patience.until("the cell's database", () => parts.lease.start());
        parts.registry.listen(deps.listener);
        parts.watch.start();
        await parts.intake.start();
        await parts.consoles.start();
        parts.confirmer.start();
        parts.orphans.start();
        parts.fenced.start();
        ready = true;
      } catch (error) {
        await close();
        throw error;
      }
    },
    close,
  };
}

function assemble(deps: ConductorDeps, settings: ConductorSettings, events: ConductorEvents, stop: AbortSignal) {
  const { store, ledger, bus, clock, tracing } = deps;
  const commits = new StepCommitter({ store, conductorId: settings.conductorId, clock, events, stop });
  const onReport = (report: AgentReport, connection: AgentConnection) =>
    dispatchReport({ runs, settler, comparer, trees, consoles, events }, report, connection);
  const { cell, conductorId, heartbeatMs, allowCellWideCertificates } = settings;
  const registry: AgentRegistry = new AgentRegistry({
    ...{ clock, heartbeatMs, conductorId, cell, allowCellWideCertificates, events },
    handlers: {
      onArrived: (connection) => {
        comparer.arrived(connection);
        for (const host of connection.hosts.keys()) runs.hostConnected(host);
      },
      onReport,
      onLost: (connection, hosts) => {
        trees.lost(connection);
        comparer.lost(connection);
        for (const host of hosts) {
          settler.hostLost(host);
          runs.hostLost(host);
        }
      },
    },
  });
  const streamOf = (host: string) => registry.streamOf(host);
  const judge = new GuestJudge({ store, commits, clock, events, settings });
  const stopServer = (guest: FoundGuest) => new ServerStopper({ store, looker: guests, commits, events }).stop(guest);
  const resumer = () => new SnapshotResumer({ store, judge, looker: guests, commits, events });
  const resumeSnapshot = (guest: FoundGuest, found: FoundKnowledge) => resumer().resume(guest, found);
  const needs = new NeighbourNeeds(deps, settings);
  const ports = new HomePorts({ networking: deps.networking ?? null, needs, store, commits, clock, events });
  const interfaces = new InterfaceCompleter({ store, clock, events, streamOf });
  const told = { stopServer, resumeSnapshot };
  const settler = new GuestSettler({ store, commits, judge, ports, interfaces, clock, events, streamOf, ...told });
  const holders = new HostHolders({ store, commits, events, unseenMs: settings.unseenMs });
  const comparer = new GuestComparer({ store, holders, settler, ports, cell, commits, clock, events });
  const carries = (connection: AgentConnection, host: string) => registry.carries(connection, host);
  const isBesideNeutron = deps.networking !== undefined;
  const trees = new TreeKeeper({ ledger, store, comparer, commits, events, holders, carries, isBesideNeutron });
  const guests = new GuestLooker({ comparer, judge, settler, connectionOf: (host) => registry.connectionOf(host) });
  const publisher = new EventPublisher({ bus, cell: settings.cell, clock, events });
  const consoles = new ConsoleAsker({ bus, cell: settings.cell, clock, events, registry });
  const unconnectedMs = (host: string) => registry.unconnectedMs(host);
  const releaser = new TaskReleaser({ store, conductorId, clock, commits, events, streamOf, unconnectedMs });
  const runPorts = {
    ...{ store, commits, clock, events, settings, releaser, streamOf, needs },
    arrivals: () => registry.arrivals,
    arrivalOf: (host: string) => registry.connectionOf(host)?.arrival ?? null,
    guests,
    guestsOn: async (host: string) => {
      const connection = registry.connectionOf(host);
      return connection === null ? null : comparer.list(connection, host).catch(() => null);
    },
    isBesideQuarantined: (attempt: ServerAttempt) => judge.isBesideQuarantined(attempt),
    homeOf: (serverUuid: string) => settler.homeOf(serverUuid),
    // The promise rejects only when the conductor stops.
    settleGuest: (guest: Parameters<GuestSettler["settle"]>[0]) => quietly(settler.settle(guest)),
    noteTransfer: (uuid: string, report: HandOffProgress) => transfers.note(uuid, report),
    tell: (event: Parameters<EventPublisher["tell"]>[0]) => publisher.tell(event),
  };
  const transfers = new TransferRecorder({ store, clock, events });
  const runs = new TaskRuns(runPorts, tracing);
  const intake = new TaskIntake({ bus, store, commits, runs, releaser, clock, events, settings });
  const lease = new LeaseKeeper({ store, clock, events, settings });
  const confirmer = new ResizeConfirmer({ store, clock, events, settings });
  const fenced = new FencedRelease({ store, clock, events });
  const orphans = new OrphanFinder({ store, clock, events, settings });
  const watch = new AgentWatch({ store, registry, trees, comparer, clock, events, settings });
  return { registry, runs, consoles, intake, lease, watch, ports, interfaces, confirmer, orphans, fenced, transfers };
}

function dispatchReport(
  parts: {
    readonly runs: TaskRuns;
    readonly settler: GuestSettler;
    readonly comparer: GuestComparer;
    readonly trees: TreeKeeper;
    readonly consoles: ConsoleAsker;
    readonly events: ConductorEvents;
  },
  report: AgentReport,
  connection: AgentConnection,
): void {
  switch (report.$case) {
    case "attempt":
      parts.runs.attemptReported(report.value);
      break;
    case "destroyed":
      parts.runs.destroyReported(report.value);
      if (report.value.attemptId !== "") parts.settler.reported(report.value);
      break;
    case "ordered":
      parts.runs.orderReported(report.value);
      break;
    case "progress":
      parts.runs.progressReported(report.value);
      break;
    case "stopped":
      // The promise rejects only when the conductor stops.
      parts.comparer.told(report.value, connection).catch(() => {});
      break;
    case "console":
    case "consoleOpened":
    case "pinning":
    case "diagnostics":
    case "interfaces":
    case "password":
      parts.consoles.told(report.value, connection);
      break;
    case "guests":
      parts.comparer.listed(report.value, connection);
      break;
    case "tree":
      // The promise rejects only when the conductor stops.
      parts.trees.take(report.value, connection).catch(() => {});
      break;
    default:
      report satisfies never;
  }
}

/** Waits for work whose outcome nobody needs. */
const quietly = (work: Promise<unknown>): Promise<void> =>
  work.then(
    () => {},
    () => {},
  );
