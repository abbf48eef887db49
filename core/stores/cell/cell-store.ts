import type { Task } from "../../../proto/gen/berth/cell.ts";
import type { ServerGroupMembership } from "../../../proto/gen/berth/shared.ts";
import type { AllocationChange, Shortfall } from "../../ledger/allocation-change.ts";
import type { HypervisorFacts } from "../../ledger/hypervisor-facts.ts";
import type { Expiry, ExpiryLimit } from "../../tasks/expiry-limit.ts";
import type { GroupConflict } from "../../tasks/group-rule.ts";
import type { Home } from "../../tasks/home.ts";
import type { Attempt, Host, Server, ServerStatus } from "../../tasks/server.ts";
import type { TaskRecord } from "../../tasks/task-record.ts";
import type { Fenced, Tenure } from "../../tasks/tenure.ts";
import type {
  AttributeQuery,
  AttributeStretch,
  ListPosition,
  ServerSketch,
  SketchQuery,
  TokenQuery,
  ValuesQuery,
} from "./listed-servers.ts";
import type { OperationStore } from "./operation-store.ts";
import type { PlugStore } from "./plug-store.ts";
import type { QuarantineStore } from "./quarantine.ts";

/**
 * A cell's database as its users see it, split by user, so that a service takes only the part it needs. Every call is one batch and one
 * transaction. Its answers come in the order of the elements. Both implementations (Postgres, in-memory) pass test/contract/cell-store.
 */
export interface CellStore
  extends DispatchStore,
    ServerStore,
    TaskStore,
    HostStore,
    OperationStore,
    QuarantineStore,
    PlugStore {}

// --- called by schedulers and the API ---------------------------------------------------------------------------------

/** A scheduler's decision. The claim, the server and the task that builds it commit together. */
export interface Dispatch {
  /** A task of kind `build`. `change` claims its `selections[0]`. */
  readonly task: Task;
  readonly change: AllocationChange;
  /** The number of the request's assignment to this cell (see RequestRecord); 0 when it is absent. */
  readonly assignment?: number;
}

/** A request that leaves a cell, or is refused there. */
export interface Closing {
  readonly serverUuid: string;
  /** The number of the assignment that ends. A dispatch under a higher number opens the cell to the server again. */
  readonly assignment: number;
}

export type DispatchOutcome =
  /** `xid` is the transaction's id in the replication stream. A view that has applied it shows the claim. */
  | { readonly kind: "dispatched"; readonly xid: number }
  /** The server is already in this cell, because the request was delivered twice. */
  | { readonly kind: "already-dispatched" }
  /**
   * The server was deleted or sent to another cell in the meantime (`close`, `requestDelete`). The caller must do nothing more for it here.
   */
  | { readonly kind: "closed" }
  | { readonly kind: "no-capacity"; readonly shortfalls: readonly Shortfall[] }
  /** The server's group does not allow this host. The hosts of the group's other servers were read under the group's lock. */
  | GroupConflict
  /** A provider or inventory of the claim is gone, because the scheduler's view was stale. */
  | { readonly kind: "stale"; readonly why: string }
  /** A guest of the server is in this cell's quarantine, and may run (`GUEST_IN_QUARANTINE`). Nothing is written. */
  | { readonly kind: "quarantined" }
  /** Another client has written allocations under the server's UUID without a scheduler, so no host of this cell can take the server. */
  | { readonly kind: "consumer-taken"; readonly why: string }
  /**
   * The database has refused the whole transaction because its disk is full. It is certain that nothing was written. A database whose answer is lost, or that fails during the commit, rejects the call instead.
   */
  | { readonly kind: "write-refused"; readonly why: string };

export type CloseOutcome = "closed" | "present" | "quarantined";

export interface DispatchStore {
  dispatch(dispatches: readonly Dispatch[]): Promise<readonly DispatchOutcome[]>;
  /**
   * Makes sure that the server can never be dispatched in this cell under this assignment or an earlier one. `"present"` means that the
   * server is already here. `"quarantined"` means that it is closed, and that a guest of it is in this cell's quarantine, so it must not be
   * placed elsewhere. Repeatable.
   */
  close(closings: readonly Closing[]): Promise<readonly CloseOutcome[]>;
}

export type DeleteOutcome =
  /** A delete task is stored: the given one, or an earlier one that is still running. Every other task of the server is fenced. */
  | { readonly kind: "queued"; readonly task: Task }
  /**
   * The server held nothing, ran nowhere, and is now deleted. This is also the answer for a server that was never here. It can no longer
   * arrive.
   */
  | { readonly kind: "deleted" };

/** Selects servers by their status, and those with an open task. */
export interface StatusQuery {
  readonly statuses: readonly ServerStatus[];
  readonly busy: boolean;
}

/** Selects servers that ran at some time of a period, of one project or of all. Times are milliseconds since the epoch. */
export interface PeriodQuery {
  readonly beginMs: number;
  readonly endMs: number;
  /** Null for every project. */
  readonly projectId: string | null;
  /** Only servers with a greater UUID, or null for all. */
  readonly after: string | null;
  /** How many servers, of the project if there is one, are looked at. */
  readonly rows: number;
}

/** Some servers of a period. The next ones are after `resumeAt`, which is null when there are no more. */
export interface PeriodStretch {
  readonly servers: readonly Server[];
  readonly resumeAt: string | null;
}

/** Which changed servers are asked for, and how much a cell may do to find them. */
export interface ChangesQuery {
  /** Both are inclusive. */
  readonly sinceMs: number;
  readonly beforeMs: number | null;
  /** Only servers that are DELETED or SOFT_DELETED. */
  readonly deleted: boolean;
  /** Null for the servers of all projects. */
  readonly projectId: string | null;
  /** The most servers of the time, whatever their project is. */
  readonly looksMax: number;
  /** How long the database may search. */
  readonly msMax: number;
}

/** `too-many` when more than `looksMax` servers were changed in the time, and `too-slow` when the database was still searching after `msMax`. */
export type ChangedServers =
  | { readonly kind: "found"; readonly servers: readonly Server[] }
  | { readonly kind: "too-many" }
  | { readonly kind: "too-slow" };

export interface ServerStore {
  /** Servers that are or were (DELETED) in this cell, in the order of the UUIDs. */
  servers(uuids: readonly string[]): Promise<readonly Server[]>;
  /** The servers that were changed in a time, the oldest change first, including DELETED ones. */
  serversChanged(query: ChangesQuery): Promise<ChangedServers>;
  /**
   * The servers, in the order of their UUIDs, that were launched before the end of the period and were not deleted before its begin. One
   * call looks at a fixed number of servers, so its time is bounded however few of them match.
   */
  serversOfPeriod(query: PeriodQuery): Promise<PeriodStretch>;
  /**
   * The servers of these statuses, newest first. BUILD, ACTIVE and DELETED find nothing: servers of these statuses are not listed apart. With
   * `busy`, servers with an open task are found as well. Null when more than `looksMax` servers would have to be looked at.
   */
  serversByStatus(query: StatusQuery, looksMax: number): Promise<readonly ListPosition[] | null>;
  /**
   * The servers with a value of an attribute, except deleted ones. One call looks at no more than a fixed number of servers with each value, so its time is
   * bounded however few of them are of the project. It may return fewer than it could, but then there is a place where the next ones follow.
   */
  serversByAttribute(query: AttributeQuery): Promise<AttributeStretch>;
  /**
   * All servers with a value of an attribute, except deleted ones, in any order, with the parts that are asked for. Null when more servers would have to be
   * looked at than may be.
   */
  serverSketches(query: SketchQuery): Promise<readonly ServerSketch[] | null>;
  /** The different values that servers have, except deleted ones, sorted. Null when the servers have more values than may be looked at. */
  attributeValues(query: ValuesQuery): Promise<readonly string[] | null>;
  /**
   * The servers, in any order, whose specs have one of the tokens (`specTokens`), except deleted ones. Null when more servers of all projects have
   * one than may be looked at.
   */
  serversByTokens(query: TokenQuery): Promise<readonly ListPosition[] | null>;
  /**
   * At most `limit` servers, newest first, on the hosts whose names contain the text. Null when they are more than `hostsMax` hosts.
   */
  serversOnHostsNamed(
    contains: string,
    limits: { readonly hostsMax: number; readonly limit: number },
  ): Promise<readonly ListPosition[] | null>;
  /** The server's attempts, sorted by task (oldest first) and then by selection. */
  attempts(serverUuid: string): Promise<readonly Attempt[]>;
  /** The attempts of several servers in one question. Those of one server are together, in the order of `attempts`. */
  attemptsOfAll(serverUuids: readonly string[]): Promise<readonly Attempt[]>;
  /**
   * The server's build, operations and deletes, oldest first. Returns all tasks that are open, have attempts or have a migration, and the
   * youngest LATER_TASKS_MAX of the others.
   */
  tasksOf(serverUuid: string): Promise<readonly TaskRecord[]>;
  /** All hosts of the cell, sorted by name. */
  hosts(): Promise<readonly Host[]>;
  /** How many servers (except DELETED ones) have the host as their home, for each host that has any. */
  serverCountByHost(): Promise<ReadonlyMap<string, number>>;
  /** Each of the `tasks` is of kind `delete`, with its server's UUID in `server`. */
  requestDelete(tasks: readonly Task[]): Promise<readonly DeleteOutcome[]>;
}

// --- called by conductors ---------------------------------------------------------------------------------------------

/** A task that this conductor now owns, under this epoch. */
export interface TakenTask {
  readonly task: Task;
  readonly epoch: number;
  /** The selection that is being tried. */
  readonly selection: number;
  /** The server's home when the task was taken, to which a delete must go. */
  readonly host: string | null;
  readonly attemptId: string | null;
}

export type CommitOutcome = { readonly kind: "committed" } | Fenced;

/** `quarantined`: another guest of the server is in quarantine, and may run (`GUEST_IN_QUARANTINE`). Nothing is written. */
export type ActiveOutcome = CommitOutcome | { readonly kind: "quarantined" };

export interface Hop extends Tenure {
  /** Index of the selection that failed. `reason` says why, and `result` is `skipped` when its host was never called. */
  readonly from: number;
  readonly reason: string;
  readonly result?: "failed" | "skipped";
  /** Index of the alternate. `toHost` is its host, and `change` releases the allocation of `from` and claims the alternate's. */
  readonly to: number;
  readonly toHost: string;
  readonly change: AllocationChange;
  /** The server's group. An alternate that the group does not allow is skipped. */
  readonly group?: ServerGroupMembership | undefined;
}
export type HopOutcome =
  | { readonly kind: "committed" }
  /**
   * The alternate no longer fits or is gone, and is recorded as skipped. The failed host's allocation stays until the next hop or the end.
   */
  | { readonly kind: "skipped"; readonly why: string }
  | Fenced;

/** Ends a task that was taken under this epoch and cannot be read, so that its server is unknown. */
export interface UnreadableEnd {
  readonly taskId: string;
  readonly epoch: number;
  readonly reason: string;
}
export type UnreadableOutcome = { readonly kind: "ended"; readonly serverUuid: string } | Fenced;

export interface TaskStore {
  /** Registers the conductor, or renews its registration. It may own tasks until `leaseMs` from now. */
  renewLease(conductor: { readonly id: string; readonly name: string; readonly leaseMs: number }): Promise<void>;
  /** Ends the lease of a conductor that stops. The tasks that it still owns are free for other conductors at once. */
  giveUpLease(conductorId: string): Promise<void>;
  /**
   * Takes the tasks that have not ended and have no owner, belong to this conductor, or belong to one whose lease ran out. Answers in the
   * order of the ids and leaves the other tasks out.
   */
  takeTasks(conductorId: string, taskIds: readonly string[]): Promise<readonly TakenTask[]>;
  /**
   * Makes the conductor the owner of tasks that it has begun without taking them. They keep their epoch, 0, so whatever it has begun to write for them
   * stays valid. Answers for each task whether the conductor owns it now: no other conductor has taken it, and it has not ended.
   */
  holdTasks(conductorId: string, taskIds: readonly string[]): Promise<readonly boolean[]>;
  /**
   * Takes up to `limit` tasks whose owner's lease ran out, or that no conductor has taken within `untakenMs` after they were stored. The
   * oldest come first, and `except` is left out.
   */
  sweepTasks(
    conductorId: string,
    untakenMs: number,
    limit: number,
    except?: readonly string[],
  ): Promise<readonly TakenTask[]>;
  /**
   * Releases these tasks, so that another conductor may sweep them up. True means that the task has no owner now. False means that nothing
   * was done: the conductor does not own the task under this epoch, or no other live conductor could take it.
   */
  releaseTasks(conductorId: string, tenures: readonly Tenure[]): Promise<readonly boolean[]>;
  /**
   * Ids of the open tasks that this conductor owns, oldest first. A conductor uses them to find a task whose take was committed although
   * the answer was lost. No other conductor sweeps such a task while its owner lives.
   */
  ownedTasks(conductorId: string): Promise<readonly string[]>;
  /** Whether the task is open and this is still its epoch: no other conductor has taken it since. Cost: one round trip. */
  holdsTask(tenure: Pick<Tenure, "taskId" | "epoch">): Promise<boolean>;
  /** Makes the server ACTIVE at home on this selection's host, and ends the task. */
  commitActive(commits: readonly (Tenure & { readonly selection: number })[]): Promise<readonly ActiveOutcome[]>;
  hop(hops: readonly Hop[]): Promise<readonly HopOutcome[]>;
  /** Puts the server in ERROR with `reason` shown to its owner, releases everything the server holds, and ends the task. */
  commitError(
    errors: readonly (Tenure & {
      readonly selection: number;
      readonly attemptReason: string;
      readonly reason: string;
    })[],
  ): Promise<readonly CommitOutcome[]>;
  /**
   * Ends tasks whose payload no conductor can read. Their servers go to ERROR with `reason` shown to their owners. A server keeps its
   * allocations, its home and its open move until it is deleted, because it is unknown which orders its hosts have received.
   */
  endUnreadable(ends: readonly UnreadableEnd[]): Promise<readonly UnreadableOutcome[]>;
  /**
   * Marks servers as DELETED whose guests are gone, and ends the task. Everything that the server holds is released, except on hosts where
   * a guest may be left.
   */
  commitDeleted(deletes: readonly Tenure[]): Promise<readonly CommitOutcome[]>;
}

/** The combined knowledge of a cell's conductors about a host's agent. */
export interface HostSighting {
  readonly name: string;
  /** The agent that last reported the host. */
  readonly agentId: string;
  readonly up: boolean;
  /** An operator has forced the host down, which asserts that nothing runs there. */
  readonly forcedDown: boolean;
  /** Milliseconds since any conductor last recorded that the host's agent lives, by the store's clock. */
  readonly seenAgoMs: number;
}

/** What the database knows of a host and of the guests that should, or may, be there. */
export interface HostRecord {
  /** Null for a host that the cell does not know. */
  readonly sighting: HostSighting | null;
  /** As of `residents`. */
  readonly residents: readonly Home[];
  /** The sorted consumers that hold something at the host for guests that moved away or could not be destroyed. */
  readonly held: readonly string[];
  /** The sorted attempts of the host's guests in quarantine. */
  readonly quarantined: readonly string[];
  /** The present incarnation of the database (`QuarantineStore.incarnation`). */
  readonly incarnation: string;
}

/** What is found when agents are recorded as alive. */
export interface AgentsSeen {
  /** The agents that have a host which is down. Such a host comes up only by `hostsUp`, after its guests were compared with `homes`. */
  readonly down: readonly string[];
  /** Whether a host is up whose agent, another one than these, was not seen for `unseenMs`. */
  readonly othersUnseen: boolean;
}

/** The stored facts about a provider that an agent reports as the root of its host's tree. */
export interface KnownRoot {
  /** The provider's name in the ledger, or null when there is no such provider. */
  readonly name: string | null;
  /** Names of the hosts that have this root provider. There is at most one, unless two hosts were given the same UUID. */
  readonly hosts: readonly string[];
}

/** An agent's report about one of its hosts. */
export interface HostReport {
  readonly name: string;
  readonly rootProvider: string;
  /** Undefined leaves the stored facts unchanged. */
  readonly hypervisor?: HypervisorFacts | undefined;
}

export interface HostStore {
  /**
   * Records that the agent is alive and carries these hosts, and that the hosts are up. A host of another agent passes to this agent. A host that the
   * cell does not know becomes one of its hosts only if its root provider is in the ledger. Returns the names of the hosts whose root providers
   * are not: they were removed after their trees were reported.
   */
  hostsUp(agentId: string, hosts: readonly HostReport[]): Promise<readonly string[]>;
  /**
   * Records the agent's hello: its hosts are seen, including those that another agent carried before. Call this before the guests of the
   * hosts are compared with `homes`, so that either a concurrent evacuation sees the agent or the comparison sees the evacuation. Hosts
   * that the cell does not know are ignored.
   */
  agentArrived(agentId: string, hosts: readonly string[]): Promise<void>;
  /**
   * Records that these agents are alive and ignores unknown ones. Returns which of them have a host that is down, and whether `expireAgents` has
   * anything to do.
   */
  agentsSeen(agentIds: readonly string[], unseenMs: number): Promise<AgentsSeen>;
  /**
   * Marks the hosts of agents that were not seen for `unseenMs` as down. The longest unseen go first, as many as the limit allows, or all
   * of them without a limit.
   */
  expireAgents(unseenMs: number, limit?: ExpiryLimit): Promise<Expiry>;
  /** Sightings of the hosts that the cell knows, sorted by name. */
  sightings(hosts: readonly string[]): Promise<readonly HostSighting[]>;
  /** For each provider UUID, in the given order, the hosts that have it as their root. */
  knownRoots(providers: readonly string[]): Promise<readonly KnownRoot[]>;
  /**
   * For each of these hosts that has not come up yet, a host of another agent such that one of the two names continues the other one with `_`, as
   * the names of a host's devices do. Null when there is none, and for every host that has come up before.
   */
  hostsNamedAlike(hosts: readonly Pick<Host, "name" | "agentId">[]): Promise<readonly (string | null)[]>;
  /** Homes of the servers that are or were in this cell, in the order of the UUIDs. */
  homes(serverUuids: readonly string[]): Promise<readonly Home[]>;
  /** For each host, the servers (except DELETED ones) whose home it is, by UUID. These must run there once they are ACTIVE. */
  residents(hosts: readonly string[]): Promise<readonly (readonly Home[])[]>;
  /**
   * For each host, all that a comparison of its guests begins with. The residents may be read a moment before or after the rest. With
   * `withResidents` false they are left out (none), because they are most of the answer and many hosts may come up at once.
   */
  hostRecords(hosts: readonly string[], options?: { readonly withResidents?: boolean }): Promise<readonly HostRecord[]>;
}
