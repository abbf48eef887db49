import type { AttemptFailure } from "../../core/tasks/build-task.ts";
import type { AllocationRequest, ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { GuestName, GuestState } from "./journal.ts";

export interface PrepareOrder extends GuestName {
  readonly server: ServerSpec;
  /** Where a server that moves comes from, and by which operation; null: it is new. */
  readonly movedFrom: { readonly host: string; readonly attemptId: string; readonly by: string } | null;
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

/** A state in which a guest may outlive its agent. */
export type KeptState = Exclude<GuestState, "building">;

export const POWER_VERBS = ["start", "stop", "reboot", "hard-reboot", "pause", "unpause"] as const;
export type PowerVerb = (typeof POWER_VERBS)[number];

export interface HandOffOrder extends GuestName {
  readonly toHost: string;
  readonly toAttemptId: string;
  readonly live: boolean;
  /** Of a live one: stop it now and copy the rest. */
  readonly force: boolean;
  /** The same for each repeat. */
  readonly orderId: string;
}

/** How a guest is found on its host. `missing`: the host has no such guest. */
export type FoundPower = "running" | "stopped" | "paused" | "missing";

/** A driver that needs longer to remove a guest has failed. */
export const DESTROY_TIMEOUT_MS = 60_000;

/**
 * What makes guests on hosts. A driver may be called for many hosts and many guests at a time. Calls for one guest never overlap, with
 * one exception: `prepare` is called at most once in the life of a process, `destroy` may overtake it, and is called again when it ends.
 * Whatever a driver throws counts as a failure that another host may cure.
 *
 * A call whose signal is raised is no longer wanted: the driver gives up what it does and settles soon, whether or not it has changed
 * the guest. Until it has settled nothing else is done to the guest, and nobody is answered.
 */
export interface Driver {
  /** Called once, first: these guests outlived the agent's last process. What that process had begun on them must have ended afterwards. */
  adopt(guests: readonly (GuestName & { readonly state: KeptState })[]): Promise<void>;
  /** How each of these guests is found on its host at this moment. */
  powersOf(guests: readonly GuestName[]): Promise<readonly FoundPower[]>;
  /** Make a guest that exists and does not run. */
  prepare(order: PrepareOrder, control: PrepareControl): Promise<PrepareOutcome>;
  /** Let a prepared guest run; no error if it runs already. */
  start(guest: GuestName, signal: AbortSignal): Promise<void>;
  /** Bring a guest into another state of power; no error if it is in it already. A guest that never ran may be stopped, too. */
  power(guest: GuestName, verb: PowerVerb, signal: AbortSignal): Promise<void>;
  /**
   * Give a guest to the one that was prepared on another host: copy what that one lacks, a live one while it runs, and stop it. Called
   * off by the signal: then it is as it was.
   */
  handOff(order: HandOffOrder, signal: AbortSignal): Promise<void>;
  /** Remove the guest and whatever a failed or half-done `prepare` left of it; no error if there is nothing. */
  destroy(guest: GuestName, signal: AbortSignal): Promise<void>;
}
