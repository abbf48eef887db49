import type { AttemptFailure } from "../../core/tasks/build-task.ts";
import type { AllocationRequest, ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { GuestName } from "./journal.ts";

export interface PrepareOrder extends GuestName {
  readonly server: ServerSpec;
  /** Which providers serve the server: a driver pins it to them. */
  readonly allocation: AllocationRequest | undefined;
}

export interface PrepareControl {
  /** Raised when the attempt took too long or is no longer wanted; what exists is destroyed afterwards. */
  readonly signal: AbortSignal;
  /** Tells what is being done ("image", "disk", "spawn"). */
  onStep(step: string): void;
}

export type PrepareOutcome =
  | { readonly kind: "prepared" }
  | { readonly kind: "failed"; readonly failure: AttemptFailure; readonly reason: string };

/** A driver that needs longer to remove a guest has failed. */
export const DESTROY_TIMEOUT_MS = 60_000;

/**
 * What makes guests on hosts. A driver may be called for many hosts and many guests at a time. For one guest `prepare` is
 * called at most once in the life of a process; `destroy` may overtake it, and is then called again when it ends. Whatever
 * a driver throws counts as a failure that another host may cure.
 */
export interface Driver {
  /** Called once, first: these guests outlived the agent's last process. */
  adopt(guests: readonly (GuestName & { readonly state: "prepared" | "running" })[]): Promise<void>;
  /** Make a guest that exists and does not run. */
  prepare(order: PrepareOrder, control: PrepareControl): Promise<PrepareOutcome>;
  /** Let a prepared guest run; no error if it runs already. */
  start(guest: GuestName): Promise<void>;
  /** Remove the guest and whatever a failed or half-done `prepare` left of it; no error if there is nothing. */
  destroy(guest: GuestName): Promise<void>;
}
