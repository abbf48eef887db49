import type { TimeRange } from "../../../../core/stores/api/api-store.ts";

const PARTS = /^(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d)(?::(\d\d)(?::(\d\d)Z?)?)?)?)?)?$/;

/**
 * Returns the time whose texts in ISO 8601 contain this beginning of one: `2026-03` is a month. Null when the text is not one that only the
 * beginning of a time can contain.
 */
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
