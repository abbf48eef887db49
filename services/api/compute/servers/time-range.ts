import type { TimeRange } from "../../../../core/stores/api/api-store.ts";

const PARTS = /^(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d)(?::(\d\d)(?::(\d\d)Z?)?)?)?)?)?$/;

/** Reads the beginning of a time in ISO 8601: `2026-03` is that month. Null for a text that may also be found elsewhere in such a time, or nowhere. */
export function timeRangeOf(text: string): TimeRange | null {
  const [, ...found] = PARTS.exec(text) ?? [];
  const given = found.filter((part) => part !== undefined).map(Number);
  if (given.length === 0) return null;
  const fromMs = timeOf(given);
  // A month beyond December, and the like, is in no time.
  if (!new Date(fromMs).toISOString().startsWith(text.replace("Z", ""))) return { fromMs, beforeMs: fromMs };
  return { fromMs, beforeMs: timeOf([...given.slice(0, -1), (given.at(-1) ?? 0) + 1]) };
}

function timeOf([year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0]: readonly number[]): number {
  const time = new Date(0);
  time.setUTCFullYear(year, month - 1, day);
  return time.setUTCHours(hour, minute, second);
}
