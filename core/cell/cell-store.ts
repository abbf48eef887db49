import type { Task } from "../../proto/gen/berth/cell.ts";
import type { ServerGroupMembership } from "../../proto/gen/berth/shared.ts";
import type { AllocationChange, Shortfall } from "../ledger/allocation-change.ts";
import type { OperationKind } from "../tasks/operation-kinds.ts";
import type { Expiry, ExpiryLimit } from "./expiry-limit.ts";
import type { GroupConflict } from "./group-rule.ts";
import type { HypervisorFacts } from "./hypervisor-facts.ts";
import type { OperationStore } from "./operation-store.ts";
import type { QuarantineStore } from "./quarantine.ts";
import type { Attempt, Host, Server } from "./server.ts";
import type { Fenced, TaskClaim } from "./task-claim.ts";
import type { TaskRecord } from "./task-record.ts";

/**
 * A cell's database as its users see it. Split by user: a service takes the part it needs. Every call is one batch and
 * one transaction; the answers come in the order of the elements. Both bodies (Postgres, in-memory) pass
 * test/contract/cell-store.
 */
export interface CellStore extends DispatchStore, ServerStore, TaskStore, HostStore, OperationStore, QuarantineStore {}

// --- from above ------------------------------------------------------------------------------------------------------

/** A scheduler's decision: the claim, the server and the task that builds it commit together. */
export interface Dispatch {
  /** Kind `build`; its selections[0] is what `change` claims. */
  readonly task: Task;
  readonly change: AllocationChange;
}

export type DispatchOutcome =
  /** `xid`: the transaction, as the replication stream names it; a view that has applied it shows the claim. */
  | { readonly kind: "dispatched"; readonly xid: number }
  /** The server is in this cell already: the request was delivered twice. */
  | { readonly kind: "already-dispatched" }
  /** Deleted or sent elsewhere in the meantime (`close`, `requestDelete`): do nothing more for it here. */
  | { readonly kind: "closed" }
  | { readonly kind: "no-capacity"; readonly shortfalls: readonly Shortfall[] }
  /** The server's group does not let it go to this host; where the group's other servers are was looked up under the group's lock. */
  | GroupConflict
  /** A provider or inventory of the claim is gone: the view was stale. */
  | { readonly kind: "stale"; readonly why: string }
  /** Somebody wrote allocations under the server's uuid, past the schedulers: no host of this cell will do. */
  | { readonly kind: "consumer-taken"; readonly why: string };

export interface DispatchStore {
  dispatch(dispatches: readonly Dispatch[]): Promise<readonly DispatchOutcome[]>;
  /**
   * Make sure that the server can never be dispatched in this cell from now on. `"present"`: too late, it is here
   * already. Repeatable.
   */
  close(serverUuids: readonly string[]): Promise<readonly ("closed" | "present")[]>;
}

export type DeleteOutcome =
  /** A delete task is stored (the given one, or an earlier one still running); every other task of the server is fenced. */
  | { readonly kind: "queued"; readonly task: Task }
  /** It held nothing, ran nowhere, and is gone now; or it was never here and now never will be. */
  | { readonly kind: "deleted" };

export interface ServerStore {
  /** Those that are or were (DELETED) in this cell, in the order of the uuids. */
  servers(uuids: readonly string[]): Promise<readonly Server[]>;
  /** Oldest change first; at most `limit`. Includes DELETED ones. `sinceMs` inclusive. */
  serversChangedSince(sinceMs: number, limit: number): Promise<readonly Server[]>;
  /** By task, the oldest first, then by selection. */
  attempts(serverUuid: string): Promise<readonly Attempt[]>;
  /**
   * The server's build, its operations and its deletes, the oldest first: those that are open, those that have attempts or a migration, and
   * of all others the youngest LATER_TASKS_MAX.
   */
  tasksOf(serverUuid: string): Promise<readonly TaskRecord[]>;
  /** By name. */
  hosts(): Promise<readonly Host[]>;
  /** How many servers (not DELETED) name the host as their home, for each host that has any. */
  serverCountByHost(): Promise<ReadonlyMap<string, number>>;
  /** `tasks` are of kind `delete`, each with its server's uuid in `server`. */
  requestDelete(tasks: readonly Task[]): Promise<readonly DeleteOutcome[]>;
}

// --- of the conductors -----------------------------------------------------------------------------------------------

/** A task that this conductor owns now, under this epoch. */
export interface TakenTask {
  readonly task: Task;
  readonly epoch: number;
  /** The selection being tried. */
  readonly selection: number;
  /** The server's home at the time: where a delete has to go. */
  readonly host: string | null;
  readonly attemptId: string | null;
}

export type CommitOutcome = { readonly kind: "committed" } | Fenced;

export interface Hop extends TaskClaim {
  /** Index of the selection that is left, and why; `skipped`: its host was never called. */
  readonly from: number;
  readonly reason: string;
  readonly result?: "failed" | "skipped";
  /** Index of the alternate to go to, its host, its attempt, and the swap that gives back `from`'s allocation and claims its own. */
  readonly to: number;
  readonly toHost: string;
  readonly change: AllocationChange;
  /** The server's group: an alternate that it does not let the server go to is skipped. */
  readonly group?: ServerGroupMembership | undefined;
}
export type HopOutcome =
  | { readonly kind: "committed" }
  /** The alternate no longer fits (or is gone): it is noted as skipped, the failed host's allocation stays until the next hop or the end. */
  | { readonly kind: "skipped"; readonly why: string }
  | Fenced;

/** Of a task that was taken under this epoch and cannot be read, so that its server is unknown. */
export interface UnreadableEnd {
  readonly taskId: string;
  readonly epoch: number;
  readonly reason: string;
}
export type UnreadableOutcome = { readonly kind: "ended"; readonly serverUuid: string } | Fenced;

export interface TaskStore {
  /** Become, or stay, a conductor that may own tasks until `leaseMs` from now. */
  renewLease(conductor: { readonly id: string; readonly name: string; readonly leaseMs: number }): Promise<void>;
  /** Leave in order: the tasks it still owns are free for others at once. */
  giveUpLease(conductorId: string): Promise<void>;
  /**
   * Own these tasks: those that have not ended and whose owner is nobody, this conductor, or one whose lease ran out. In
   * the order of the ids; the others are left out.
   */
  takeTasks(conductorId: string, taskIds: readonly string[]): Promise<readonly TakenTask[]>;
  /**
   * Own up to `limit` tasks whose owner's lease ran out, or that nobody has taken `untakenMs` after they were stored;
   * oldest first; none of `except`.
   */
  sweepTasks(
    conductorId: string,
    untakenMs: number,
    limit: number,
    except?: readonly string[],
  ): Promise<readonly TakenTask[]>;
  /**
   * Give these tasks back, so that another conductor may sweep them up. True: nobody owns it now. False, and nothing was
   * done: it is not owned under this epoch any more (or was given back before), or no other conductor lives to take it.
   */
  handOver(conductorId: string, claims: readonly TaskClaim[]): Promise<readonly boolean[]>;
  /**
   * Ids of the tasks that this conductor owns and that have not ended, oldest first: how it finds one whose taking was
   * committed while the answer was lost (nobody else sweeps it as long as the owner lives).
   */
  ownedTasks(conductorId: string): Promise<readonly string[]>;
  /** ACTIVE, at home on this selection's host; the task ends. */
  commitActive(commits: readonly (TaskClaim & { readonly selection: number })[]): Promise<readonly CommitOutcome[]>;
  hop(hops: readonly Hop[]): Promise<readonly HopOutcome[]>;
  /** ERROR with `reason` shown to its owner; whatever the server holds is given back; the task ends. */
  commitError(
    errors: readonly (TaskClaim & {
      readonly selection: number;
      readonly attemptReason: string;
      readonly reason: string;
    })[],
  ): Promise<readonly CommitOutcome[]>;
  /**
   * End tasks whose payload no conductor can read. Their servers are in ERROR with `reason` shown to their owners; a server keeps what it
   * holds, its home and a move that is not over until it is deleted, since nobody knows what its hosts were told.
   */
  endUnreadable(ends: readonly UnreadableEnd[]): Promise<readonly UnreadableOutcome[]>;
  /** Gone from its hosts: give back what it holds, except on hosts where a guest may be left; DELETED; the task ends. */
  commitDeleted(deletes: readonly TaskClaim[]): Promise<readonly CommitOutcome[]>;
}

/** What an agent's guest may do, by the server's row. */
export interface Home {
  readonly serverUuid: string;
  readonly status: Server["status"];
  readonly host: string | null;
  readonly attemptId: string | null;
  readonly revision: number;
  /** An operation or a delete is under way: its conductor starts, stops and destroys the server's guests. */
  readonly busy: boolean;
  /** The move that is not over, if any: its guests are kept although they are not at home. */
  readonly move: {
    readonly uuid: string;
    readonly kind: OperationKind;
    readonly source: { readonly host: string; readonly attemptId: string } | null;
    readonly dest: { readonly host: string; readonly attemptId: string };
    /** Whether the server runs while it waits for its confirmation. */
    readonly runs: boolean;
  } | null;
}

/** What the conductors of a cell together know of a host's agent. */
export interface HostSighting {
  readonly name: string;
  /** The agent that reported it last. */
  readonly agentId: string;
  readonly up: boolean;
  /** An operator has forced it down, which is the word that nothing runs there. */
  readonly forcedDown: boolean;
  /** How long ago any conductor said that the host's agent lives, in milliseconds of the store's clock. */
  readonly seenAgoMs: number;
}

/** What the cell knows of a provider that an agent reports as the root of its host's tree. */
export interface KnownRoot {
  /** The provider's name in the ledger; null: there is no such provider. */
  readonly name: string | null;
  /** The hosts whose root it is, by name; one at most, unless two hosts were given one uuid. */
  readonly hosts: readonly string[];
}

/** What an agent says of a host that it carries. */
export interface HostReport {
  readonly name: string;
  readonly rootProvider: string;
  /** Undefined: as it was. */
  readonly hypervisor?: HypervisorFacts | undefined;
}

export interface HostStore {
  /** The agent carries these hosts and lives; they are up. A host that another agent carried goes over to this one. */
  hostsUp(agentId: string, hosts: readonly HostReport[]): Promise<void>;
  /**
   * The agent said hello and carries these hosts: they are seen, also those that another agent carried before. To be called before the
   * guests of the hosts are compared with `homes`, so that an evacuation which begins at the same time sees the agent, or is seen.
   * Hosts that the cell does not know are passed over.
   */
  agentArrived(agentId: string, hosts: readonly string[]): Promise<void>;
  /**
   * These agents live (unknown ones are passed over). Returns those of them with a host that is down: such a host comes up
   * by `hostsUp` only, after its guests were compared with `homes`.
   */
  agentsSeen(agentIds: readonly string[]): Promise<readonly string[]>;
  /** Hosts of agents not seen for so long are down now, those first that were unseen for longest, as many as the limit lets (none: all). */
  expireAgents(unseenMs: number, limit?: ExpiryLimit): Promise<Expiry>;
  /** Of those hosts that the cell knows, by name. */
  sightings(hosts: readonly string[]): Promise<readonly HostSighting[]>;
  /** For each provider uuid in turn: whose root it is. */
  knownRoots(providers: readonly string[]): Promise<readonly KnownRoot[]>;
  /** Of those servers that are or were in this cell, in the order of the uuids. */
  homes(serverUuids: readonly string[]): Promise<readonly Home[]>;
  /** For each host the servers whose home it is (not DELETED), by uuid: what must run there once ACTIVE. */
  residents(hosts: readonly string[]): Promise<readonly (readonly Home[])[]>;
}
