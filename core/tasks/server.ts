import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { HypervisorFacts } from "../ledger/hypervisor-facts.ts";

/**
 * Statuses of a server between two operations, as the Compute API shows them. During an operation the shown status also depends on the task
 * state (`shownStatus`). `DELETED` rows are kept as a record and are not shown to users.
 */
export const SERVER_STATUSES = [
  "BUILD",
  "ACTIVE",
  "ERROR",
  "DELETED",
  "SHUTOFF",
  "PAUSED",
  "SUSPENDED",
  "RESCUE",
  "VERIFY_RESIZE",
  "SHELVED",
  "SHELVED_OFFLOADED",
  "SOFT_DELETED",
] as const;
export type ServerStatus = (typeof SERVER_STATUSES)[number];

/** A server as its cell knows it. Times are milliseconds since the epoch. */
export interface Server {
  readonly uuid: string;
  readonly status: ServerStatus;
  /** The action in progress, as Nova names it (`spawning`, `resize_prep`, `deleting`, …), or null when there is none. */
  readonly taskState: string | null;
  readonly spec: ServerSpec;
  /** The host that holds the server's allocation, or null when the server holds nothing. */
  readonly host: string | null;
  /** The attempt that may run on `host`. */
  readonly attemptId: string | null;
  readonly fault: { readonly message: string; readonly atMs: number } | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly launchedAtMs: number | null;
  readonly deletedAtMs: number | null;
  /** Rises with each step of an operation. A planned operation names the revision that it was planned for. */
  readonly revision: number;
}

/**
 * The outcome of one selection of a build. `skipped` marks an alternate that no longer fitted or whose host was not connected. It does not
 * count as an attempt.
 */
export interface Attempt {
  readonly taskId: string;
  readonly selection: number;
  readonly serverUuid: string;
  readonly host: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
  readonly result: AttemptResult | null;
  readonly reason: string | null;
}
export type AttemptResult = "success" | "failed" | "skipped" | "cancelled";

/** The id under which a host builds a selection of a task. It is the same for every sender and every repetition. */
export function attemptIdOf(taskId: string, selection: number): string {
  return `${taskId}/${selection}`;
}

/** A host of a cell, as its agent reported it. */
export interface Host {
  readonly name: string;
  readonly rootProvider: string;
  readonly agentId: string;
  readonly up: boolean;
  readonly disabled: boolean;
  readonly hypervisor: HypervisorFacts;
}
