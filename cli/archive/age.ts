import type { Kind } from "../../runtime/setting-kinds.ts";

/** Nothing younger is archived. After this time, every message, lease and retry about a row has ended. */
const AGE_MS_MIN = 24 * 3_600_000;
const UNITS_MS: Readonly<Record<string, number>> = { h: 3_600_000, d: 24 * 3_600_000, w: 7 * 24 * 3_600_000 };

/**
 * An age such as `90d`, `2w` or `36h`, or a date or moment such as 2026-01-31 or 2026-01-31T12:00:00Z. The value is a function from the
 * present time to that moment.
 */
export const age: Kind<(nowMs: number) => number> = {
  allowed: "an age like 36h, 90d or 12w (a day at least), or a date or moment like 2026-01-31 or 2026-01-31T12:00:00Z",
  placeholder: "AGE",
  parse: (given) => {
    const [, amount, unit = ""] = /^(\d+)([hdw])$/.exec(given) ?? [];
    if (amount !== undefined) {
      const ageMs = Number(amount) * (UNITS_MS[unit] ?? 0);
      return ageMs >= AGE_MS_MIN ? (nowMs) => nowMs - ageMs : undefined;
    }
    if (!/^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d))?$/.test(given)) return undefined;
    const momentMs = Date.parse(given);
    // A moment that is too recent is replaced by the most recent one allowed.
    return Number.isNaN(momentMs) ? undefined : (nowMs) => Math.min(momentMs, nowMs - AGE_MS_MIN);
  },
};
