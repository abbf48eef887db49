import { setTimeout as delay } from "node:timers/promises";
import { conductorPermissions } from "../adapters/nats/streams.ts";
import { checkUpCalls } from "../core/audit/check-up-calls.ts";
import type { FoundViolation } from "../core/audit/violation.ts";
import { ViolationTracker } from "../core/audit/violation-tracker.ts";
import { systemClock } from "../runtime/clock.ts";
import { type AuditReport, auditReportOf } from "./audit-report.ts";
import { type AuditedCloud, type CloudReading, readCloud } from "./read-cloud.ts";

export interface AuditOptions extends AuditedCloud {
  /** Pause between the two readings in milliseconds, longer than a claim, a commit or an order to an agent is in flight. */
  readonly pauseMs: number;
  /** How long a request or a task may remain unattended, in milliseconds. */
  readonly patienceMs: number;
  /** Names of all settings of a conductor. */
  readonly conductorSettings: readonly string[];
}

/** Audits a live cloud. A violation counts when the first reading shows it and a second one, after a pause, shows it again. */
export async function auditTwice(options: AuditOptions): Promise<AuditReport> {
  const tracker = new ViolationTracker(0);
  const first = await observeCloud(options, tracker);
  const upCalls = upCallsOf(options);
  // A clean reading needs no second one.
  if (!tracker.suspects) return auditReportOf(first.reading, upCalls);
  await delay(options.pauseMs);
  const second = await observeCloud(options, tracker);
  return auditReportOf(second.reading, [...tracker.standing, ...upCalls]);
}

/** Makes one reading, and updates the tracker with it. */
export async function observeCloud(
  options: AuditOptions,
  tracker: ViolationTracker,
): Promise<{ readonly reading: CloudReading; readonly changes: ReturnType<ViolationTracker["observe"]> }> {
  const at = { atMs: systemClock.monotonic(), at: new Date(systemClock.now()).toISOString() };
  const reading = await readCloud(options, options.patienceMs);
  const isComplete = reading.unread.size + reading.unreadGuests.size === 0 && reading.unreadCinder === null;
  const changes = tracker.observe(reading.violations, { ...at, isComplete });
  return { reading, changes };
}

/** Checks law 3, which depends on settings and not on a reading. */
export function upCallsOf(options: AuditOptions): readonly FoundViolation[] {
  const since = new Date(systemClock.now()).toISOString();
  return options.cells
    .flatMap(({ name }) =>
      checkUpCalls({ settings: options.conductorSettings, cell: name, publishes: conductorPermissions(name).publish }),
    )
    .map((violation) => ({ ...violation, since }));
}
