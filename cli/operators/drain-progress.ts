import { shareParts } from "../progress-line.ts";

/** How far a drain is. */
export interface DrainTally {
  total: number;
  moved: number;
  stayed: number;
}

/** A drain's state as one line. */
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
