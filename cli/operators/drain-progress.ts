import { shareParts } from "../../runtime/progress-line.ts";

/** The progress of a drain. */
export interface DrainTally {
  total: number;
  moved: number;
  stayed: number;
}

/** The state of a drain as one line. */
export function drainLine({ total, moved, stayed }: DrainTally, seconds: number, withBar: boolean): string {
  const ended = moved + stayed;
  const rate = seconds > 0 ? ended / seconds : 0;
  const parts = [
    ...shareParts(total === 0 ? 1 : ended / total, withBar),
    `moved ${moved} of ${total}`,
    ...(stayed > 0 ? [`stayed ${stayed}`] : []),
    `${rate.toFixed(1)}/s`,
  ];
  return parts.join("  ");
}
