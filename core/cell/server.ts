import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { HypervisorFacts } from "./hypervisor-facts.ts";

/**
 * Statuses of a server between two operations, as the Compute API shows them; what it shows during one follows from the task
 * state, too (`shownStatus`). `DELETED` rows are kept for the record and shown to nobody.
 */
export const SERVER_STATUSES = [
  "BUILD",
  "ACTIVE",
  "ERROR",
  "DELETED",
  "SHUTOFF",
  "PAUSED",
  "VERIFY_RESIZE",
  "SHELVED",
  "SHELVED_OFFLOADED",
] as const;
export type ServerStatus = (typeof SERVER_STATUSES)[number];

/** A server as its cell knows it. Times are milliseconds since the epoch. */
export interface Server {
  readonly uuid: string;
  readonly status: ServerStatus;
  /** What is being done to it, as Nova names it (`spawning`, `resize_prep`, `deleting`, …); null: nothing. */
  readonly taskState: string | null;
  readonly spec: ServerSpec;
  /** The host that holds its allocation; null when it holds nothing. */
  readonly host: string | null;
  /** The attempt that may run on `host`. */
  readonly attemptId: string | null;
  readonly fault: { readonly message: string; readonly atMs: number } | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly launchedAtMs: number | null;
  readonly deletedAtMs: number | null;
  /** Rises with each step of an operation: who plans one says which he saw. */
  readonly revision: number;
}

/** What became of one selection of a build. `skipped`: an alternate that no longer fitted, or a host that was not connected; counts as no attempt. */
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

/** The id under which a host builds a selection of a task: the same whoever sends it, however often. */
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
