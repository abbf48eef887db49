import type { Holding } from "../../../core/ledger/holding.ts";
import { compare } from "../../../core/ledger/ledger-state.ts";
import type {
  ActiveOutcome,
  AgentsSeen,
  CellStore,
  ChangedServers,
  ChangesQuery,
  CloseOutcome,
  Closing,
  CommitOutcome,
  DeleteOutcome,
  Dispatch,
  DispatchOutcome,
  Hop,
  HopOutcome,
  HostRecord,
  HostReport,
  HostSighting,
  KnownRoot,
  TakenTask,
  UnreadableEnd,
  UnreadableOutcome,
} from "../../../core/stores/cell/cell-store.ts";
import type {
  BeginOutcome,
  ClosingOutcome,
  ComparedHost,
  HoldingPatch,
  MigrationQuery,
  OrphanLook,
  OrphanPage,
  PatchOutcome,
  ResetOutcome,
  SignalOutcome,
  StatusReset,
  StepOutcome,
  TaskClosing,
  TransferNote,
} from "../../../core/stores/cell/operation-store.ts";
import type { PlugEvent, PluggedPort } from "../../../core/stores/cell/plug-store.ts";
import type { DoomedGuest, GuestVerdict } from "../../../core/stores/cell/quarantine.ts";
import { type Expiry, type ExpiryLimit, NO_EXPIRY_LIMIT } from "../../../core/tasks/expiry-limit.ts";
import type { Home } from "../../../core/tasks/home.ts";
import type { Migration } from "../../../core/tasks/migration.ts";
import type {
  BeginOperation,
  OperationPosition,
  OperationSignal,
  OperationStep,
} from "../../../core/tasks/operation-step.ts";
import type { Attempt, Host, Server } from "../../../core/tasks/server.ts";
import type { TaskOutcome } from "../../../core/tasks/task-record.ts";
import type { Tenure } from "../../../core/tasks/tenure.ts";
import type { Task } from "../../../proto/gen/berth/cell.ts";
import type { AllocationRequest } from "../../../proto/gen/berth/shared.ts";
import { MemoryCellTables } from "./memory-cell-tables.ts";
import { closeStep, dispatchStep, orRefused, requestDeleteStep } from "./memory-dispatch-steps.ts";
import { hostRecordsOf } from "./memory-host-records.ts";
import {
  agentArrivedStep,
  agentsSeenStep,
  expireStep,
  homeOf,
  hostNamedAlike,
  hostsInCell,
  hostsUpStep,
  knownRootsOf,
  residentsOf,
  sightingOf,
} from "./memory-host-steps.ts";
import {
  beginStep,
  claimedOf,
  commitOperationStep,
  migrationsOf,
  patchStep,
  positionOf,
  releaseEvacuatedStep,
  resetStep,
  signalStep,
  unconfirmedOf,
} from "./memory-operation-steps.ts";
import { orphanPageOf } from "./memory-orphans.ts";
import { addPlugged, pluggedPortsOf } from "./memory-plugged-ports.ts";
import * as serverReads from "./memory-server-reads.ts";
import {
  commitActiveStep,
  commitDeletedStep,
  commitErrorStep,
  endUnreadableStep,
  holdStep,
  hopStep,
  ownedBy,
  releaseTaskStep,
  sweepStep,
  takeStep,
} from "./memory-task-steps.ts";

/**
 * The in-process twin of a cell's database, which lives as long as this object. Each call is one synchronous step on rows and ledger together.
 */
export class MemoryCellStore extends MemoryCellTables implements CellStore {
  // --- DispatchStore, ServerStore

  async dispatch(dispatches: readonly Dispatch[]): Promise<readonly DispatchOutcome[]> {
    return orRefused(dispatches, () => this.step((tx) => dispatches.map((dispatch) => dispatchStep(tx, dispatch))));
  }

  async close(closings: readonly Closing[]): Promise<readonly CloseOutcome[]> {
    return this.step((tx) => closings.map((closing) => closeStep(tx, closing)));
  }

  async requestDelete(tasks: readonly Task[]): Promise<readonly DeleteOutcome[]> {
    return this.step((tx) => tasks.map((task) => requestDeleteStep(tx, task)));
  }

  /** The server as it is at this moment, for observers. Null when the cell does not have it. */
  look(uuid: string): Server | null {
    return serverReads.serverOf(this.cell.servers.get(uuid));
  }

  async servers(uuids: readonly string[]): Promise<readonly Server[]> {
    return uuids.map((uuid) => this.look(uuid)).filter((server) => server !== null);
  }

  async serversChanged(query: ChangesQuery): Promise<ChangedServers> {
    return serverReads.serversChanged(this.cell, query);
  }

  readonly serversOfPeriod: CellStore["serversOfPeriod"] = async (query) =>
    serverReads.serversOfPeriod(this.cell, query);

  readonly serversByStatus: CellStore["serversByStatus"] = async (query, limit) =>
    serverReads.serversByStatus(this.cell, query, limit);

  readonly serversByAttribute: CellStore["serversByAttribute"] = async (query) =>
    serverReads.serversByAttribute(this.cell, query);

  readonly serverSketches: CellStore["serverSketches"] = async (query) => serverReads.serverSketches(this.cell, query);

  readonly attributeValues: CellStore["attributeValues"] = async (query) =>
    serverReads.attributeValues(this.cell, query);

  readonly serversByTokens: CellStore["serversByTokens"] = async (query) =>
    serverReads.serversByTokens(this.cell, query);

  readonly serversOnHostsNamed: CellStore["serversOnHostsNamed"] = async (contains, limits) =>
    serverReads.serversOnHostsNamed(this.cell, contains, limits);

  readonly attempts: CellStore["attempts"] = async (uuid) => serverReads.attemptsOf(this.cell, uuid);

  async attemptsOfAll(serverUuids: readonly string[]): Promise<readonly Attempt[]> {
    return serverUuids.toSorted().flatMap((uuid) => serverReads.attemptsOf(this.cell, uuid));
  }

  readonly tasksOf: CellStore["tasksOf"] = async (uuid) => serverReads.tasksOf(this.cell, uuid);

  async hosts(): Promise<readonly Host[]> {
    return hostsInCell(this.cell);
  }

  async serverCountByHost(): Promise<ReadonlyMap<string, number>> {
    return serverReads.serverCountByHost(this.cell);
  }

  // --- TaskStore

  async renewLease(conductor: { readonly id: string; readonly name: string; readonly leaseMs: number }): Promise<void> {
    this.cell.conductorNames.set(conductor.id, conductor.name);
    const nowMs = this.clock.now();
    this.cell.leases.set(conductor.id, nowMs + conductor.leaseMs);
    this.cell.leaseRenewals.set(conductor.id, nowMs);
  }

  async giveUpLease(conductorId: string): Promise<void> {
    this.cell.leases.delete(conductorId);
    this.cell.leaseRenewals.delete(conductorId);
  }

  async holdTasks(conductorId: string, taskIds: readonly string[]): Promise<readonly boolean[]> {
    return this.step((tx) => taskIds.map((id) => holdStep(tx, conductorId, id)));
  }

  async takeTasks(conductorId: string, taskIds: readonly string[]): Promise<readonly TakenTask[]> {
    return this.step((tx) =>
      [...new Set(taskIds)].map((id) => takeStep(tx, conductorId, id)).filter((taken) => taken !== null),
    );
  }

  async sweepTasks(
    conductorId: string,
    untakenMs: number,
    limit: number,
    except: readonly string[] = [],
  ): Promise<readonly TakenTask[]> {
    return this.step((tx) => sweepStep(tx, { conductorId, untakenMs, limit, except }));
  }

  async releaseTasks(conductorId: string, tenures: readonly Tenure[]): Promise<readonly boolean[]> {
    return this.step((tx) => tenures.map((tenure) => releaseTaskStep(tx, conductorId, tenure)));
  }

  async holdsTask({ taskId, epoch }: Pick<Tenure, "taskId" | "epoch">): Promise<boolean> {
    return [...this.cell.running].some((row) => row.id === taskId && row.epoch === epoch);
  }

  async ownedTasks(conductorId: string): Promise<readonly string[]> {
    return ownedBy(this.cell, conductorId).map((row) => row.id);
  }

  async commitActive(commits: readonly (Tenure & { readonly selection: number })[]): Promise<readonly ActiveOutcome[]> {
    return this.step((tx) => commits.map((commit) => commitActiveStep(tx, commit)));
  }

  async hop(hops: readonly Hop[]): Promise<readonly HopOutcome[]> {
    return this.step((tx) => hops.map((hop) => hopStep(tx, hop)));
  }

  async commitError(errors: Parameters<CellStore["commitError"]>[0]): Promise<readonly CommitOutcome[]> {
    return this.step((tx) => errors.map((error) => commitErrorStep(tx, error)));
  }

  async endUnreadable(ends: readonly UnreadableEnd[]): Promise<readonly UnreadableOutcome[]> {
    return this.step((tx) => ends.map((end) => endUnreadableStep(tx, end)));
  }

  async commitDeleted(deletes: readonly Tenure[]): Promise<readonly CommitOutcome[]> {
    return this.step((tx) => deletes.map((tenure) => commitDeletedStep(tx, tenure)));
  }

  // --- HostStore

  async hostsUp(agentId: string, hosts: readonly HostReport[]): Promise<readonly string[]> {
    return this.step((tx) => hostsUpStep(tx, agentId, hosts));
  }

  async agentArrived(agentId: string, hosts: readonly string[]): Promise<void> {
    this.step((tx) => agentArrivedStep(tx, agentId, hosts));
  }

  async agentsSeen(agentIds: readonly string[], unseenMs: number): Promise<AgentsSeen> {
    return this.step((tx) => agentsSeenStep(tx, agentIds, unseenMs));
  }

  async expireAgents(unseenMs: number, limit: ExpiryLimit = NO_EXPIRY_LIMIT): Promise<Expiry> {
    return this.step((tx) => expireStep(tx, unseenMs, limit));
  }

  incarnation(): Promise<string> {
    return this.quarantine.incarnation();
  }
  judgeGuests(guests: readonly DoomedGuest[]): Promise<readonly GuestVerdict[]> {
    return this.quarantine.judgeGuests(guests);
  }
  noteCompared: CellStore["noteCompared"] = (hosts) => this.quarantine.noteCompared(hosts);
  keepQuarantined: CellStore["keepQuarantined"] = (hosts) => this.quarantine.keepQuarantined(hosts);
  raiseRevisions: CellStore["raiseRevisions"] = (revisions) => this.quarantine.raiseRevisions(revisions);
  markUncertain: CellStore["markUncertain"] = (servers) => this.quarantine.markUncertain(servers);
  othersInQuarantine: CellStore["othersInQuarantine"] = (attempts) => this.quarantine.othersInQuarantine(attempts);

  async sightings(hosts: readonly string[]): Promise<readonly HostSighting[]> {
    return [...new Set(hosts)]
      .sort(compare)
      .map((name) => sightingOf(this.cell, name, this.clock.now()))
      .filter((sighting) => sighting !== null);
  }

  async knownRoots(providers: readonly string[]): Promise<readonly KnownRoot[]> {
    return this.ledger.transact((tx) => knownRootsOf(this.cell, tx.providers(), providers));
  }

  async hostsNamedAlike(hosts: readonly Pick<Host, "name" | "agentId">[]): Promise<readonly (string | null)[]> {
    return hosts.map((host) => hostNamedAlike(this.cell, host));
  }

  async homes(serverUuids: readonly string[]): Promise<readonly Home[]> {
    return serverUuids.map((uuid) => homeOf(this.cell, this.cell.servers.get(uuid))).filter((home) => home !== null);
  }

  async residents(hosts: readonly string[]): Promise<readonly (readonly Home[])[]> {
    return residentsOf(this.cell, hosts);
  }

  async hostRecords(
    hosts: readonly string[],
    { withResidents = true }: { readonly withResidents?: boolean } = {},
  ): Promise<readonly HostRecord[]> {
    const incarnation = this.quarantine.present;
    return hostRecordsOf(this.cell, hosts, { nowMs: this.clock.now(), incarnation, withResidents });
  }

  // --- OperationStore

  async begin(operations: readonly BeginOperation[]): Promise<readonly BeginOutcome[]> {
    return this.step((tx) => operations.map((operation) => beginStep(tx, operation)));
  }

  restoredAgoMs(): Promise<number | null> {
    return this.quarantine.restoredAgoMs();
  }

  async closeTasks(closings: readonly TaskClosing[]): Promise<readonly ClosingOutcome[]> {
    return this.step((tx) =>
      closings.map(({ taskId }) => {
        if (tx.cell.tasks.has(taskId)) return "begun";
        tx.cell.closedTasks.add(taskId);
        return "closed";
      }),
    );
  }

  async outcomes(taskIds: readonly string[]): Promise<readonly (TaskOutcome | "open" | null)[]> {
    return taskIds.map((id) => {
      const task = this.cell.tasks.get(id);
      return task === undefined ? null : (task.outcome ?? "open");
    });
  }

  async guestsLeft(serverUuids: readonly string[]): Promise<readonly boolean[]> {
    const held = [...this.cell.migrations.values()].flatMap((row) => (row.holdsSource ? row.serverUuid : []));
    const kept = [...this.cell.quarantined.values()].map((guest) => guest.serverUuid.toLowerCase());
    const left = new Set([...held, ...kept]);
    return serverUuids.map((uuid) => left.has(uuid) || this.quarantine.mayBeUnseen(uuid));
  }

  async patchHoldings(patches: readonly HoldingPatch[]): Promise<readonly PatchOutcome[]> {
    return this.step((tx) => patches.map((patch) => patchStep(tx, patch)));
  }

  async claimed(attemptIds: readonly string[]): Promise<readonly (AllocationRequest | null)[]> {
    return attemptIds.map((id) => claimedOf(this.cell, id));
  }

  async holdings(consumerUuids: readonly string[]): Promise<readonly (Holding | null)[]> {
    const { consumers } = await this.ledger.dump();
    const held = new Map<string, Holding>(
      consumers.map(({ uuid, generation, items }) => [uuid, { generation, items }]),
    );
    return consumerUuids.map((uuid) => held.get(uuid) ?? null);
  }

  async resetStatus(resets: readonly StatusReset[]): Promise<readonly ResetOutcome[]> {
    return this.step((tx) => resets.map((one) => resetStep(tx, one)));
  }

  async signal(
    signals: readonly { readonly taskId: string; readonly signal: OperationSignal }[],
  ): Promise<readonly SignalOutcome[]> {
    return this.step((tx) => signals.map(({ taskId, signal }) => signalStep(tx, taskId, signal)));
  }

  async positions(taskIds: readonly string[]): Promise<readonly OperationPosition[]> {
    return taskIds.map((id) => positionOf(this.cell, id)).filter((position) => position !== null);
  }

  async commitStep(steps: readonly OperationStep[]): Promise<readonly StepOutcome[]> {
    return this.step((tx) => steps.map((step) => commitOperationStep(tx, step)));
  }

  async noteTransfers(notes: readonly TransferNote[]): Promise<void> {
    for (const { migrationUuid, progress } of notes)
      if (this.cell.migrations.get(migrationUuid)?.ended === false) this.cell.transfers.set(migrationUuid, progress);
  }

  async notePlugged(events: readonly PlugEvent[]): Promise<void> {
    addPlugged(this.cell, events);
  }

  async pluggedPorts(attemptIds: readonly string[]): Promise<readonly (readonly PluggedPort[])[]> {
    return attemptIds.map((id) => pluggedPortsOf(this.cell, id));
  }

  async migrations(query: MigrationQuery): Promise<readonly Migration[]> {
    return migrationsOf(this.cell, query);
  }

  async unconfirmed(waitedMs: number, limit: number, after: string | null): Promise<readonly Migration[]> {
    return unconfirmedOf(this.cell, this.clock.now() - waitedMs, limit, after);
  }

  async fencedSources(): Promise<readonly string[]> {
    const held = [...this.cell.migrations.values()].flatMap((row) => (row.holdsSource ? (row.sourceHost ?? []) : []));
    return [...new Set(held)].filter((host) => this.cell.forcedDown.has(host)).sort(compare);
  }

  async orphans(look: OrphanLook): Promise<OrphanPage> {
    const { consumers } = await this.ledger.dump();
    return orphanPageOf(this.cell, consumers, look);
  }

  async releaseEvacuated(hosts: readonly ComparedHost[]): Promise<readonly (readonly string[])[]> {
    return this.step((tx) => hosts.map((host) => releaseEvacuatedStep(tx, host)));
  }
}
