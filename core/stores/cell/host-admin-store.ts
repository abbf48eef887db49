import type { HypervisorFacts } from "../../ledger/hypervisor-facts.ts";
import type { KeptOffer } from "../../ledger/merge-report.ts";

/** A host with everything that operators and agents have said about it. Times are milliseconds since the epoch. */
export interface AdminHost {
  readonly name: string;
  readonly rootProvider: string;
  readonly agentId: string;
  readonly up: boolean;
  readonly disabled: boolean;
  readonly disabledReason: string | null;
  /** The host counts as down whatever its agent reports. */
  readonly forcedDown: boolean;
  /** When a conductor last heard from the host's agent, or null when that is unknown. */
  readonly seenAtMs: number | null;
  readonly hypervisor: HypervisorFacts;
}

/** A conductor of the cell. */
export interface ConductorSighting {
  readonly id: string;
  readonly name: string;
  /** Whether the conductor's lease is still valid. */
  readonly alive: boolean;
  /** When it last renewed its lease, or null if it is of a version that does not record this. */
  readonly renewedAtMs: number | null;
  /** The number of unfinished tasks that it has taken. */
  readonly tasks: number;
}

/** Allocation ratios by resource class. */
export type Ratios = Readonly<Record<string, number>>;

/** The cell's copy of decisions that the API tier makes about one host. */
export interface OperatorState {
  readonly host: string;
  readonly rootProvider: string;
  /** The asked-for aggregates that contain the host's root provider, sorted. */
  readonly aggregates: readonly string[];
  /** Ratios that override the agent's. */
  readonly ratios: Ratios;
  /** Whether every inventory of an overridden class still has the override's ratio. A client may have overwritten it directly. */
  readonly ratiosHold: boolean;
}

export interface MirrorChange {
  readonly rootProvider: string;
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

export interface RatioChange {
  readonly rootProvider: string;
  /** From now on these are all overrides of the host's tree. */
  readonly ratios: Ratios;
}

/** One inventory of a host's tree. */
export interface HostInventory {
  readonly host: string;
  readonly provider: string;
  readonly providerName: string;
  readonly resourceClass: string;
  readonly total: number;
  readonly reserved: number;
  readonly used: number;
  readonly allocationRatio: number;
  /** The ratio that the agent reported, when an override replaces it. Null without an override. */
  readonly reportedRatio: number | null;
}

/** One provider of a host's tree. */
export interface HostProvider {
  readonly provider: string;
  readonly providerName: string;
  /** Null for the root. */
  readonly parent: string | null;
  /** Sorted. */
  readonly traits: readonly string[];
  /** Whether the host's agent reports the provider, or somebody else has created it. */
  readonly isReported: boolean;
  /** When the provider itself was last changed, or null when that is unknown. */
  readonly changedAtMs: number | null;
}

/** A host's tree without its inventories, and the result of its agent's latest report. */
export interface HostTreeRecord {
  /** Sorted by name. */
  readonly providers: readonly HostProvider[];
  readonly kept: readonly KeptOffer[];
  /** Why the latest report was refused, or empty. */
  readonly refusal: string;
}

/**
 * What came of the removal of a host. All kinds but `removed` change nothing. `has-allocations`: consumers other than its servers hold something of its
 * tree, for example guests that were left behind on it. `agent-seen`: its agent was heard within the given time, and no operator has forced it down.
 */
export type HostRemoval =
  | "removed"
  | "unknown"
  | "has-servers"
  | "has-moves"
  | "has-allocations"
  | "has-quarantined-guests"
  | "agent-seen";

/**
 * Operators' actions on the hosts of a cell. Operators' settings persist: they are applied again to each tree that an agent reports.
 * Both implementations (Postgres, in-memory) pass test/contract/host-admin. Every write is one transaction.
 */
export interface HostAdminStore {
  /** All conductors of the cell, sorted by id. */
  conductors(): Promise<readonly ConductorSighting[]>;
  /** Hosts sorted by name. Null selects all hosts. */
  adminHosts(names: readonly string[] | null): Promise<readonly AdminHost[]>;
  /** Changes the host's row and its root's trait COMPUTE_STATUS_DISABLED together. Returns false when there is no such host. */
  setDisabled(host: string, disabled: boolean, reason: string | null): Promise<boolean>;
  /**
   * Takes the host down at once and keeps it down, or lets it come up again when its agent is heard. Returns false when there is no such
   * host.
   */
  setForcedDown(host: string, forcedDown: boolean): Promise<boolean>;
  /**
   * Removes a host that has no servers, with its provider tree, the operators' settings for it, and the record of its comparisons. An agent that reports
   * the host afterwards brings it up as a new one. `unseenMs`: how long its agent must not have been heard.
   */
  removeHost(host: string, unseenMs: number): Promise<HostRemoval>;
  /** Removes a conductor whose lease has expired. Returns false when there is no such conductor, or when it is alive. */
  removeConductor(id: string): Promise<boolean>;
  /** The state of these hosts, sorted by name. Null selects all hosts. */
  operatorState(aggregates: readonly string[], hosts?: readonly string[] | null): Promise<readonly OperatorState[]>;
  /** Adds hosts to and removes hosts from placement aggregates. Missing root providers are ignored. */
  mirrorAggregates(changes: readonly MirrorChange[]): Promise<void>;
  /** Replaces the overrides of each tree. An inventory that loses its override returns to the ratio that its agent reported. */
  setRatios(changes: readonly RatioChange[]): Promise<void>;
  /** Inventories of one host's tree, sorted by provider name and resource class. */
  inventories(host: string): Promise<readonly HostInventory[]>;
  /** The tree of one host. It has no providers when there is no such host. */
  treeOf(host: string): Promise<HostTreeRecord>;
}
