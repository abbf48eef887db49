import { expect, test } from "vitest";
import { age } from "./age.ts";

const NOW_MS = Date.parse("2026-06-15T12:00:00Z");
const momentOf = (given: string) => {
  const moment = age.parse(given);
  return moment === undefined ? undefined : new Date(moment(NOW_MS)).toISOString();
};

test.each([
  ["36h", "2026-06-14T00:00:00.000Z"],
  ["90d", "2026-03-17T12:00:00.000Z"],
  ["2w", "2026-06-01T12:00:00.000Z"],
  ["2026-01-31", "2026-01-31T00:00:00.000Z"],
  ["2026-01-31T12:00:00+02:00", "2026-01-31T10:00:00.000Z"],
])("%s is %s", (given, moment) => {
  expect(momentOf(given)).toBe(moment);
});

test("a moment less than a day ago is replaced by a day ago", () => {
  expect(momentOf("2026-06-15T11:00:00Z")).toBe("2026-06-14T12:00:00.000Z");
});

test.each(["1h", "0d", "90", "90 days", "tomorrow", "2026-13-45"])(
  "%s is refused as invalid or too recent",
  (given) => {
    expect(momentOf(given)).toBeUndefined();
  },
);
