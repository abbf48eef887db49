import { expect, it } from "vitest";
import { describeUptime } from "./describe-uptime.ts";

const NOW = Date.UTC(2026, 0, 2, 14, 5, 31);
const minutes = (count: number) => NOW - count * 60_000;

it.each([
  [minutes(7), " 14:05:31 up 7 min"],
  [minutes(66), " 14:05:31 up  1:06"],
  [minutes(24 * 60 + 66), " 14:05:31 up 1 day,  1:06"],
  [minutes(3 * 24 * 60 + 12 * 60), " 14:05:31 up 3 days, 12:00"],
  [NOW + 5_000, " 14:05:31 up 0 min"],
  [0, null],
  [-1, null],
])("describes a host that booted at %d as %s", (bootedAtMs, text) => {
  expect(describeUptime(bootedAtMs, NOW)).toBe(text);
});
