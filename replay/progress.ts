import { shareParts } from "../runtime/progress-line.ts";
import type { Tally } from "./tally.ts";

/** The state of a replay as one line. */
export function progressLine(tally: Tally, seconds: number, withBar: boolean): string {
  const rate = seconds > 0 ? tally.ended / seconds : 0;
  const left = rate > 0 ? Math.ceil((tally.tasks - tally.ended) / rate) : null;
  const parts = [
    ...shareParts(tally.tasks === 0 ? 1 : tally.ended / tally.tasks, withBar),
    `placed ${tally.placed}`,
    `retried ${tally.failedAttempts}`,
    `refused ${tally.noValidHost}`,
    ...(tally.errors > 0 ? [`errors ${tally.errors}`] : []),
    `${Math.round(rate)}/s`,
    left === null ? "" : `${durationOf(left)} left`,
  ];
  return parts.join("  ").trimEnd();
}

function durationOf(seconds: number): string {
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
