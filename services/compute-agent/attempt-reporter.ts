import type { ConductorStream } from "../../core/agent/link.ts";
import type { GuestPinning } from "../../core/pinning/guest-pinning.ts";
import { type AttemptReport, FailureKind, GuestState } from "../../proto/gen/berth/agent.ts";
import type { GuestStore } from "./guest-store.ts";
import type { GuestEntry } from "./guest-table.ts";
import type { GuestName } from "./journal.ts";
import { portDevicesOf } from "./port-devices-of.ts";

/** The report on an attempt for a conductor. */
export function attemptReportOf(entry: GuestEntry): AttemptReport {
  const { host, serverUuid, attemptId } = entry;
  const name = { host, serverUuid, attemptId, step: "", listensAt: "" };
  const noFailure = { failure: FailureKind.FAILURE_KIND_UNSPECIFIED, reason: "" };
  switch (entry.state) {
    case "building":
      return { ...name, ...noFailure, state: GuestState.GUEST_STATE_BUILDING };
    case "prepared":
      return { ...name, ...noFailure, state: GuestState.GUEST_STATE_PREPARED, listensAt: entry.listensAt ?? "" };
    case "running":
      return { ...name, ...noFailure, state: GuestState.GUEST_STATE_RUNNING };
    case "stopped":
      return { ...name, ...noFailure, state: GuestState.GUEST_STATE_STOPPED };
    case "paused":
      return { ...name, ...noFailure, state: GuestState.GUEST_STATE_PAUSED };
    case "suspended":
      return { ...name, ...noFailure, state: GuestState.GUEST_STATE_SUSPENDED };
    case "rescued":
      return { ...name, ...noFailure, state: GuestState.GUEST_STATE_RESCUED };
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
 * Decides which conductors receive the reports on an attempt: all that ordered it. A slow conductor may repeat its order after another one
 * has taken over the task, and only the other one can commit the outcome, so both must receive it. When the streams of all of them are
 * gone, any other conductor receives the report, and looks up in the cell's database where the guest belongs. So a prepared guest is always
 * reported to some conductor.
 */
export class AttemptReporter {
  readonly #store: GuestStore;
  readonly #anyWelcomed: () => ConductorStream | null;
  readonly #pinningOf: (name: GuestName) => GuestPinning | null;
  /** The conductors that ordered an attempt, by attempt id. */
  readonly #askedBy = new Map<string, Asked>();

  /** `pinningOf` reads the devices of the host that a guest has. */
  constructor(
    store: GuestStore,
    anyWelcomed: () => ConductorStream | null,
    pinningOf: (name: GuestName) => GuestPinning | null = () => null,
  ) {
    this.#pinningOf = pinningOf;
    this.#store = store;
    this.#anyWelcomed = anyWelcomed;
  }

  /** From now on this conductor also receives the reports on the attempt. */
  attach(name: GuestName, stream: ConductorStream): void {
    const asked = this.#askedBy.get(name.attemptId);
    if (asked === undefined) this.#askedBy.set(name.attemptId, { name, streams: new Set([stream]) });
    else asked.streams.add(stream);
  }

  /** Ends the reports on the attempt, because no conductor waits for them. */
  detach(attemptId: string): void {
    this.#askedBy.delete(attemptId);
  }

  report(report: AttemptReport): void {
    const asked = [...(this.#askedBy.get(report.attemptId)?.streams ?? [])].filter((stream) => !stream.closed);
    const any = asked.length > 0 ? null : this.#anyWelcomed();
    for (const stream of any === null ? asked : [any]) stream.send({ body: { $case: "attempt", value: report } });
  }

  /** Reports the state of a known attempt. An attempt whose end is not yet durable is reported as building. */
  reportState(entry: GuestEntry): void {
    const devices =
      entry.state === "failed" || entry.state === "building" ? undefined : portDevicesOf(entry, this.#pinningOf);
    const report = { ...attemptReportOf(entry), devices };
    if (this.#store.isSettling(entry)) this.report({ ...report, state: GuestState.GUEST_STATE_BUILDING });
    // An entry becomes `failed` only when its guest is gone.
    else this.report(entry.state === "failed" ? { ...report, nothingLeft: true } : report);
  }

  /** Reports the guests that were prepared for a lost conductor to the others that ordered them, or to any other conductor. */
  lost(stream: ConductorStream): void {
    for (const [attemptId, { name, streams }] of this.#askedBy) {
      if (!streams.delete(stream)) continue;
      const entry = this.#store.guest(name.host, attemptId);
      if (entry?.state === "prepared") this.reportState(entry);
      else if (streams.size === 0 && entry?.state !== "building") this.#askedBy.delete(attemptId);
    }
  }
}
