import type { ConductorStream } from "../../core/agent/link.ts";
import { type AttemptReport, FailureKind, GuestState } from "../../proto/gen/berth/agent.ts";
import type { GuestStore } from "./guest-store.ts";
import type { GuestEntry } from "./guest-table.ts";
import type { GuestName } from "./journal.ts";

/** What a conductor is told of an attempt. */
export function attemptReportOf(entry: GuestEntry): AttemptReport {
  const { host, serverUuid, attemptId } = entry;
  const name = { host, serverUuid, attemptId, step: "" };
  const noFailure = { failure: FailureKind.FAILURE_KIND_UNSPECIFIED, reason: "" };
  switch (entry.state) {
    case "building":
      return { ...name, ...noFailure, state: GuestState.GUEST_STATE_BUILDING };
    case "prepared":
      return { ...name, ...noFailure, state: GuestState.GUEST_STATE_PREPARED };
    case "running":
      return { ...name, ...noFailure, state: GuestState.GUEST_STATE_RUNNING };
    case "stopped":
      return { ...name, ...noFailure, state: GuestState.GUEST_STATE_STOPPED };
    case "paused":
      return { ...name, ...noFailure, state: GuestState.GUEST_STATE_PAUSED };
    case "failed":
      return {
        ...name,
        state: GuestState.GUEST_STATE_FAILED,
        failure: entry.failure === "abort" ? FailureKind.FAILURE_KIND_ABORT : FailureKind.FAILURE_KIND_RESCHEDULE,
        reason: entry.reason,
      };
    default:
      return entry satisfies never;
  }
}

interface Asked {
  readonly name: GuestName;
  readonly streams: Set<ConductorStream>;
}

/**
 * Decides which conductors hear of an attempt: all that asked for it. One that was slow, whose task another has taken over
 * meanwhile, may ask again last, and only the other can commit what comes of it. When the streams of all who asked are gone,
 * any other hears of it, which then looks in the cell's database whose the guest is. So a prepared guest is never forgotten
 * by all of them.
 */
export class AttemptReporter {
  readonly #store: GuestStore;
  readonly #anyWelcomed: () => ConductorStream | null;
  /** By attempt id. */
  readonly #askedBy = new Map<string, Asked>();

  constructor(store: GuestStore, anyWelcomed: () => ConductorStream | null) {
    this.#store = store;
    this.#anyWelcomed = anyWelcomed;
  }

  /** From now on this conductor hears of the attempt, too. */
  attach(name: GuestName, stream: ConductorStream): void {
    const asked = this.#askedBy.get(name.attemptId);
    if (asked === undefined) this.#askedBy.set(name.attemptId, { name, streams: new Set([stream]) });
    else asked.streams.add(stream);
  }

  /** Nobody waits for news of the attempt any more. */
  detach(attemptId: string): void {
    this.#askedBy.delete(attemptId);
  }

  report(report: AttemptReport): void {
    const asked = [...(this.#askedBy.get(report.attemptId)?.streams ?? [])].filter((stream) => !stream.closed);
    const any = asked.length > 0 ? null : this.#anyWelcomed();
    for (const stream of any === null ? asked : [any]) stream.send({ body: { $case: "attempt", value: report } });
  }

  /** The state of an attempt that the agent knows; one whose end is not durable yet counts as building. */
  reportState(entry: GuestEntry): void {
    const report = attemptReportOf(entry);
    this.report(this.#store.isSettling(entry) ? { ...report, state: GuestState.GUEST_STATE_BUILDING } : report);
  }

  /** What was prepared for a conductor that is gone is offered to the others that asked, or to another one. */
  lost(stream: ConductorStream): void {
    for (const [attemptId, { name, streams }] of this.#askedBy) {
      if (!streams.delete(stream)) continue;
      const entry = this.#store.guest(name.host, attemptId);
      if (entry?.state === "prepared") this.reportState(entry);
      else if (streams.size === 0 && entry?.state !== "building") this.#askedBy.delete(attemptId);
    }
  }
}
