import { expect, test } from "vitest";
import { timeRangeOf } from "./time-range.ts";

test.each([
  ["2026", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"],
  ["2026-12", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"],
  ["2024-02-29", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"],
  ["2026-12-31T23", "2026-12-31T23:00:00Z", "2027-01-01T00:00:00Z"],
  ["2026-03-04T10:59", "2026-03-04T10:59:00Z", "2026-03-04T11:00:00Z"],
  ["2026-03-04T10:11:12", "2026-03-04T10:11:12Z", "2026-03-04T10:11:13Z"],
  ["2026-03-04T10:11:12Z", "2026-03-04T10:11:12Z", "2026-03-04T10:11:13Z"],
  ["0099-01", "0099-01-01T00:00:00Z", "0099-02-01T00:00:00Z"],
])("the time of %s is from %s until %s", (text, from, before) => {
  expect(timeRangeOf(text)).toEqual({ fromMs: Date.parse(from), beforeMs: Date.parse(before) });
});

test.each(["", "20", "2026-", "2026-1", "03-04", "10:11:12Z", "2026-03-04 10"])("%s is no time", (text) => {
  expect(timeRangeOf(text)).toBeNull();
});

test.each(["2026-13", "2026-02-30", "2026-03-04T24"])("nothing is created in %s", (text) => {
  const range = timeRangeOf(text);
  expect(range?.beforeMs).toBe(range?.fromMs);
});
