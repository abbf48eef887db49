import type { Attempt, AttemptResult } from "../../../core/cell/server.ts";

/** One thing that a caller did to a server, with what came of it. Times are milliseconds since the epoch. */
export interface InstanceAction {
  /** As Nova calls it. */
  readonly action: string;
  readonly requestId: string;
  readonly startedAtMs: number;
  readonly updatedAtMs: number;
  /** `Error` when it failed, as Nova says; the reasons are the events'. */
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
  /** Why, in words; null when there is nothing to explain. */
  readonly details: string | null;
  /** What only admins are told besides: it names hosts. */
  readonly forAdmins?: string;
}

/** An alternate was to be claimed and no longer had room. Nova keeps no event for it. */
const EVENT_SKIP = "conductor_build_instances";

const RESULTS: Readonly<Record<AttemptResult, "Success" | "Error">> = {
  success: "Success",
  failed: "Error",
  skipped: "Error",
  cancelled: "Error",
};

/** `event`: Nova's name of a try on a host. */
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
