import { expect, test } from "vitest";
import { putOffDelayMs, putOffDelayOfOthersMs } from "./put-off-delay.ts";

test("the delay of a row doubles each time that it is put off, up to half a minute", () => {
  expect([0, 1, 2, 5, 6, 7, 1_000].map(putOffDelayMs)).toEqual([500, 1_000, 2_000, 16_000, 30_000, 30_000, 30_000]);
});

test("the other servers of a multi-create are always due after the one that is tried for all of them", () => {
  for (const putOffs of [0, 1, 5, 20]) expect(putOffDelayOfOthersMs(putOffs)).toBeGreaterThanOrEqual(putOffDelayMs(20));
});
