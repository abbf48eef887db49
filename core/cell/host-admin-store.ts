import type { HypervisorFacts } from "./hypervisor-facts.ts";

/** A host with all that operators and agents say of it. Times are milliseconds since the epoch. */
export interface AdminHost {
  readonly name: string;
  readonly rootProvider: string;
  readonly agentId: string;
  readonly up: boolean;
  readonly disabled: boolean;
  readonly disabledReason: string | null;
  /** Not up whatever its agent says. */
  readonly forcedDown: boolean;
  /** When a conductor last heard of its agent; null: not known. */
  readonly seenAtMs: number | null;
  readonly hypervisor: HypervisorFacts;
}

/** A conductor of the cell. */
export interface ConductorSighting {
  readonly id: string;
  readonly name: string;
  /** Its lease holds. */
  readonly alive: boolean;
}

/** Ratios by resource class. */
export type Ratios = Readonly<Record<string, number>>;

/** What the cell holds of what the API tier decides. */
export interface OperatorState {
  readonly host: string;
  readonly rootProvider: string;
  /** Those of the asked-for aggregates that its root is in, sorted. */
  readonly aggregates: readonly string[];
  /** Ratios that override the agent's. */
  readonly ratios: Ratios;
  /** Every inventory of an overridden class has the override's ratio (somebody may have written past it). */
  readonly ratiosHold: boolean;
}

export interface MirrorChange {
  readonly rootProvider: string;
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

export interface RatioChange {
  readonly rootProvider: string;
  /** All overrides of its tree from now on. */
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
  /** What the agent reported, where an override stands over it; else null. */
  readonly reportedRatio: number | null;
}

/**
 * What operators do to the hosts of a cell. Their word lasts: a tree that an agent reports is written under it. Both bodies
 * (Postgres, in-memory) pass test/contract/host-admin. Every write is one transaction.
 */
export interface HostAdminStore {
  /** By id. */
  conductors(): Promise<readonly ConductorSighting[]>;
  /** By name. `null`: all. */
  adminHosts(names: readonly string[] | null): Promise<readonly AdminHost[]>;
  /** The row, and the trait COMPUTE_STATUS_DISABLED of the host's root, together. False: no such host. */
  setDisabled(host: string, disabled: boolean, reason: string | null): Promise<boolean>;
  /** Down at once, and kept down; or up again once its agent is heard. False: no such host. */
  setForcedDown(host: string, forcedDown: boolean): Promise<boolean>;
  /** By name. `hosts` null: all. */
  operatorState(aggregates: readonly string[], hosts?: readonly string[] | null): Promise<readonly OperatorState[]>;
  /** Roots that are not there are passed over. */
  mirrorAggregates(changes: readonly MirrorChange[]): Promise<void>;
  /** Inventories whose override goes get back what their agent reported. */
  setRatios(changes: readonly RatioChange[]): Promise<void>;
  /** Of one host's tree, by name of provider and class. */
  inventories(host: string): Promise<readonly HostInventory[]>;
}
