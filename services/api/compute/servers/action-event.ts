import type { Attempt, AttemptResult } from "../../../../core/tasks/server.ts";

/** One action of a caller on a server, with its outcome. Times are milliseconds since the epoch. */
export interface InstanceAction {
  /** Nova's name of the action. */
  readonly action: string;
  readonly requestId: string;
  /** The caller. Absent when it was the server's creator. */
  readonly askedBy?: { readonly userId: string; readonly projectId: string };
  readonly startedAtMs: number;
  readonly updatedAtMs: number;
  /** `Error` when the action failed, as in Nova. Its events have the reasons. */
  readonly message: string | null;
  /** Newest first. */
  readonly events: readonly ActionEvent[];
}

export interface ActionEvent {
  readonly event: string;
  readonly host: string | null;
  readonly startedAtMs: number;
  readonly finishedAtMs: number | null;
  readonly result: "Success" | "Error" | null;
  /** The reason in words, or null when there is nothing to explain. */
  readonly details: string | null;
  /** Further details for admins only, because they name hosts. */
  readonly forAdmins?: string;
}

/** The event for an alternate that no longer had room when it was to be claimed. Nova has no event for this. */
const EVENT_SKIP = "conductor_build_instances";

const RESULTS: Readonly<Record<AttemptResult, "Success" | "Error">> = {
  success: "Success",
  failed: "Error",
  skipped: "Error",
  cancelled: "Error",
};

/** Returns the event of one attempt. `event` is Nova's name for a try on a host. */
export function attemptEvent(attempt: Attempt, event: string): ActionEvent {
  const { result, reason } = attempt;
  return {
    event: result === "skipped" ? EVENT_SKIP : event,
    host: attempt.host,
    startedAtMs: attempt.startedAtMs,
    finishedAtMs: attempt.endedAtMs,
    result: result === null ? null : RESULTS[result],
    details: reason ?? (result === "cancelled" ? "The server was deleted while it was built." : null),
  };
}
