import type { Pool } from "pg";
import type { Holding } from "../../../core/ledger/holding.ts";
import type {
  ActiveOutcome,
  AgentsSeen,
  CellStore,
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
  PeriodQuery,
  PeriodStretch,
  StatusQuery,
  TakenTask,
  UnreadableEnd,
  UnreadableOutcome,
} from "../../../core/stores/cell/cell-store.ts";
import type { AttributeQuery, AttributeStretch, ListPosition } from "../../../core/stores/cell/listed-servers.ts";
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
} from "../../../core/stores/cell/operation-store.ts";
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
import type { TaskOutcome, TaskRecord } from "../../../core/tasks/task-record.ts";
import type { Tenure } from "../../../core/tasks/tenure.ts";
import type { Task } from "../../../proto/gen/berth/cell.ts";
import type { AllocationRequest } from "../../../proto/gen/berth/shared.ts";
import { closeTasks, readGuestsLeft, readOutcomes } from "./close-tasks.ts";
import { commitActive, commitDeleted, commitError, hopTasks } from "./commit-tasks.ts";
import { requestDeletes } from "./delete-servers.ts";
import { closeServers, dispatchServers } from "./dispatch-servers.ts";
import { endUnreadable } from "./end-unreadable.ts";
import { KeyNames } from "./key-names.ts";
import { noteTransfers } from "./note-transfers.ts";
import { beginOperations, commitSteps, readPositions, signalOperations } from "./operate-servers.ts";
import { readOthersInQuarantine } from "./others-in-quarantine.ts";
import { patchHoldings } from "./patch-holdings.ts";
import { readPluggedPorts, writePluggedPorts } from "./plugged-ports.ts";
import {
  judgeGuests,
  keepQuarantined,
  markUncertain,
  noteCompared,
  raiseRevisions,
  readIncarnation,
  readRestoredAgo,
} from "./quarantine.ts";
import { readServersChanged } from "./read-changed-servers.ts";
import { readClaimed } from "./read-claimed.ts";
import { readHostRecords } from "./read-host-records.ts";
import { readHoldings, readMigrations, readUnconfirmed, releaseEvacuated } from "./read-migrations.ts";
import { readFencedSources, readOrphans } from "./read-orphans.ts";
import { readServerSketches } from "./read-server-sketches.ts";
import {
  readAttempts,
  readHomes,
  readResidents,
  readServerCountByHost,
  readServers,
  readServersByStatus,
  readServersOfPeriod,
} from "./read-servers.ts";
import { readServersByAttribute, readServersByTokens, readServersOnHostsNamed } from "./read-servers-by-attribute.ts";
import { readTasksOf } from "./read-tasks.ts";
import { resetStatus } from "./reset-status.ts";
import {
  giveUpLease,
  holdsTask,
  holdTasks,
  readOwnedTasks,
  releaseTasks,
  renewLease,
  sweepTasks,
  takeTasks,
} from "./take-tasks.ts";
import {
  agentArrived,
  expireAgents,
  readHosts,
  readHostsNamedAlike,
  readKnownRoots,
  readSightings,
  touchAgents,
  writeHostsUp,
} from "./write-hosts.ts";

/**
 * A cell's database in Postgres. Every write is one function of schema/cell/functions or one statement, and one transaction. Elements of a
 * batch that name the same server or task go in transactions of their own, in their order. All times are the database's. Throws
 * `StoreError`. A call that was `unavailable` may be repeated; only a sweep whose answer was lost has already taken tasks, which
 * `ownedTasks` finds. The caller keeps the pool and ends it.
 */
export class PostgresCellStore implements CellStore {
  readonly #pool: Pool;
  readonly #keyNames: KeyNames;

  constructor(pool: Pool) {
    this.#pool = pool;
    this.#keyNames = new KeyNames(pool);
  }

  // --- DispatchStore, ServerStore

  dispatch(dispatches: readonly Dispatch[]): Promise<readonly DispatchOutcome[]> {
    return dispatchServers(this.#pool, dispatches);
  }

  close(closings: readonly Closing[]): Promise<readonly CloseOutcome[]> {
    return closeServers(this.#pool, closings);
  }

  requestDelete(tasks: readonly Task[]): Promise<readonly DeleteOutcome[]> {
    return requestDeletes(this.#pool, tasks);
  }

  servers(uuids: readonly string[]): Promise<readonly Server[]> {
    return readServers(this.#pool, uuids);
  }

  readonly serversChanged: CellStore["serversChanged"] = (query) => readServersChanged(this.#pool, query);

  serversOfPeriod(query: PeriodQuery): Promise<PeriodStretch> {
    return readServersOfPeriod(this.#pool, query);
  }

  serversByStatus(query: StatusQuery, looksMax: number): Promise<readonly ListPosition[] | null> {
    return readServersByStatus(this.#pool, query, looksMax);
  }

  serversByAttribute(query: AttributeQuery): Promise<AttributeStretch> {
    return readServersByAttribute(this.#pool, query);
  }

  readonly attributeValues: CellStore["attributeValues"] = (query) => this.#keyNames.containing(query);

  readonly serverSketches: CellStore["serverSketches"] = (query) => readServerSketches(this.#pool, query);

  readonly serversByTokens: CellStore["serversByTokens"] = (query) => readServersByTokens(this.#pool, query);

  readonly serversOnHostsNamed: CellStore["serversOnHostsNamed"] = (contains, limits) =>
    readServersOnHostsNamed(this.#pool, contains, limits);

  attempts(serverUuid: string): Promise<readonly Attempt[]> {
    return readAttempts(this.#pool, [serverUuid]);
  }

  attemptsOfAll(serverUuids: readonly string[]): Promise<readonly Attempt[]> {
    return readAttempts(this.#pool, serverUuids);
  }

  tasksOf(serverUuid: string): Promise<readonly TaskRecord[]> {
    return readTasksOf(this.#pool, serverUuid);
  }

  hosts(): Promise<readonly Host[]> {
    return readHosts(this.#pool);
  }

  serverCountByHost(): Promise<ReadonlyMap<string, number>> {
    return readServerCountByHost(this.#pool);
  }

  // --- TaskStore

  renewLease(conductor: { readonly id: string; readonly name: string; readonly leaseMs: number }): Promise<void> {
    return renewLease(this.#pool, conductor);
  }

  giveUpLease(conductorId: string): Promise<void> {
    return giveUpLease(this.#pool, conductorId);
  }

  holdTasks(conductorId: string, taskIds: readonly string[]): Promise<readonly boolean[]> {
    return holdTasks(this.#pool, conductorId, taskIds);
  }

  takeTasks(conductorId: string, taskIds: readonly string[]): Promise<readonly TakenTask[]> {
    return takeTasks(this.#pool, conductorId, taskIds);
  }

  sweepTasks(conductorId: string, untakenMs: number, limit: number, except: readonly string[] = []) {
    return sweepTasks(this.#pool, conductorId, untakenMs, limit, except);
  }

  releaseTasks(conductorId: string, tenures: readonly Tenure[]): Promise<readonly boolean[]> {
    return releaseTasks(this.#pool, conductorId, tenures);
  }

  holdsTask(tenure: Pick<Tenure, "taskId" | "epoch">): Promise<boolean> {
    return holdsTask(this.#pool, tenure);
  }

  ownedTasks(conductorId: string): Promise<readonly string[]> {
    return readOwnedTasks(this.#pool, conductorId);
  }

  commitActive(commits: readonly (Tenure & { readonly selection: number })[]): Promise<readonly ActiveOutcome[]> {
    return commitActive(this.#pool, commits);
  }

  hop(hops: readonly Hop[]): Promise<readonly HopOutcome[]> {
    return hopTasks(this.#pool, hops);
  }

  commitError(
    errors: readonly (Tenure & {
      readonly selection: number;
      readonly attemptReason: string;
      readonly reason: string;
    })[],
  ): Promise<readonly CommitOutcome[]> {
    return commitError(this.#pool, errors);
  }

  endUnreadable(ends: readonly UnreadableEnd[]): Promise<readonly UnreadableOutcome[]> {
    return endUnreadable(this.#pool, ends);
  }

  commitDeleted(deletes: readonly Tenure[]): Promise<readonly CommitOutcome[]> {
    return commitDeleted(this.#pool, deletes);
  }

  // --- HostStore

  hostsUp(agentId: string, hosts: readonly HostReport[]): Promise<readonly string[]> {
    return writeHostsUp(this.#pool, agentId, hosts);
  }

  agentArrived(agentId: string, hosts: readonly string[]): Promise<void> {
    return agentArrived(this.#pool, agentId, hosts);
  }

  agentsSeen(agentIds: readonly string[], unseenMs: number): Promise<AgentsSeen> {
    return touchAgents(this.#pool, agentIds, unseenMs);
  }

  expireAgents(unseenMs: number, limit: ExpiryLimit = NO_EXPIRY_LIMIT): Promise<Expiry> {
    return expireAgents(this.#pool, unseenMs, limit);
  }

  incarnation(): Promise<string> {
    return readIncarnation(this.#pool);
  }
  judgeGuests(guests: readonly DoomedGuest[]): Promise<readonly GuestVerdict[]> {
    return judgeGuests(this.#pool, guests);
  }
  noteCompared(hosts: Parameters<CellStore["noteCompared"]>[0]): Promise<void> {
    return noteCompared(this.#pool, hosts);
  }
  keepQuarantined(hosts: Parameters<CellStore["keepQuarantined"]>[0]): Promise<void> {
    return keepQuarantined(this.#pool, hosts);
  }
  raiseRevisions(revisions: Parameters<CellStore["raiseRevisions"]>[0]): Promise<void> {
    return raiseRevisions(this.#pool, revisions);
  }
  markUncertain(servers: Parameters<CellStore["markUncertain"]>[0]): Promise<readonly boolean[]> {
    return markUncertain(this.#pool, servers);
  }
  othersInQuarantine(attempts: Parameters<CellStore["othersInQuarantine"]>[0]): Promise<readonly boolean[]> {
    return readOthersInQuarantine(this.#pool, attempts);
  }

  sightings(hosts: readonly string[]): Promise<readonly HostSighting[]> {
    return readSightings(this.#pool, hosts);
  }

  knownRoots(providers: readonly string[]): Promise<readonly KnownRoot[]> {
    return readKnownRoots(this.#pool, providers);
  }

  hostsNamedAlike(hosts: readonly Pick<Host, "name" | "agentId">[]): Promise<readonly (string | null)[]> {
    return readHostsNamedAlike(this.#pool, hosts);
  }

  homes(serverUuids: readonly string[]): Promise<readonly Home[]> {
    return readHomes(this.#pool, serverUuids);
  }

  residents(hosts: readonly string[]): Promise<readonly (readonly Home[])[]> {
    return readResidents(this.#pool, hosts);
  }

  hostRecords(...asked: Parameters<CellStore["hostRecords"]>): Promise<readonly HostRecord[]> {
    return readHostRecords(this.#pool, ...asked);
  }

  // --- OperationStore

  begin(operations: readonly BeginOperation[]): Promise<readonly BeginOutcome[]> {
    return beginOperations(this.#pool, operations);
  }

  restoredAgoMs(): Promise<number | null> {
    return readRestoredAgo(this.#pool);
  }

  closeTasks(closings: readonly TaskClosing[]): Promise<readonly ClosingOutcome[]> {
    return closeTasks(this.#pool, closings);
  }

  outcomes(taskIds: readonly string[]): Promise<readonly (TaskOutcome | "open" | null)[]> {
    return readOutcomes(this.#pool, taskIds);
  }

  guestsLeft(serverUuids: readonly string[]): Promise<readonly boolean[]> {
    return readGuestsLeft(this.#pool, serverUuids);
  }

  patchHoldings(patches: readonly HoldingPatch[]): Promise<readonly PatchOutcome[]> {
    return patchHoldings(this.#pool, patches);
  }

  claimed(attemptIds: readonly string[]): Promise<readonly (AllocationRequest | null)[]> {
    return readClaimed(this.#pool, attemptIds);
  }

  holdings(consumerUuids: readonly string[]): Promise<readonly (Holding | null)[]> {
    return readHoldings(this.#pool, consumerUuids);
  }

  signal(
    signals: readonly { readonly taskId: string; readonly signal: OperationSignal }[],
  ): Promise<readonly SignalOutcome[]> {
    return signalOperations(this.#pool, signals);
  }

  resetStatus(resets: readonly StatusReset[]): Promise<readonly ResetOutcome[]> {
    return resetStatus(this.#pool, resets);
  }

  positions(taskIds: readonly string[]): Promise<readonly OperationPosition[]> {
    return readPositions(this.#pool, taskIds);
  }

  commitStep(steps: readonly OperationStep[]): Promise<readonly StepOutcome[]> {
    return commitSteps(this.#pool, steps);
  }

  readonly noteTransfers: CellStore["noteTransfers"] = (notes) => noteTransfers(this.#pool, notes);

  readonly notePlugged: CellStore["notePlugged"] = (events) => writePluggedPorts(this.#pool, events);

  readonly pluggedPorts: CellStore["pluggedPorts"] = (attemptIds) => readPluggedPorts(this.#pool, attemptIds);

  migrations(query: MigrationQuery): Promise<readonly Migration[]> {
    return readMigrations(this.#pool, query);
  }

  unconfirmed(waitedMs: number, limit: number, after: string | null): Promise<readonly Migration[]> {
    return readUnconfirmed(this.#pool, waitedMs, limit, after);
  }

  fencedSources(): Promise<readonly string[]> {
    return readFencedSources(this.#pool);
  }

  orphans(look: OrphanLook): Promise<OrphanPage> {
    return readOrphans(this.#pool, look);
  }

  releaseEvacuated(hosts: readonly ComparedHost[]): Promise<readonly (readonly string[])[]> {
    return releaseEvacuated(this.#pool, hosts);
  }
}
