import { expect, test } from "vitest";
import { faultBands, layFaults } from "./fault-lanes.ts";
import type { FaultSpan } from "./fault-spans.ts";
import { timeScale } from "./scale.ts";

const span = (faultId: number, fromMs: number, toMs: number): FaultSpan => ({
  ...{ faultId, fault: "kill", target: `cell1-conductor-${faultId}`, detail: null, fromMs, toMs, ended: true },
});
const RIGHT = 1_100;
const time = timeScale(100_000, 60, RIGHT);

/** The left and right end of a fault together with its label. */
function extent({ x, width, label, labelX }: ReturnType<typeof layFaults>["faults"][number]) {
  return [Math.min(x, labelX), Math.max(x + width, labelX + label.length * 6)] as const;
}

test.each([
  ["a few", Array.from({ length: 4 }, (_, index) => span(index + 1, index * 20_000, index * 20_000 + 5_000))],
  ["many short ones", Array.from({ length: 80 }, (_, index) => span(index + 1, index * 1_200, index * 1_200 + 800))],
  ["many at the same time", Array.from({ length: 12 }, (_, index) => span(index + 1, index * 1_000, 90_000))],
  ["some at the very end", [span(1, 99_000, 100_000), span(2, 99_500, 100_000)]],
])("labels of %s meet neither each other nor the edge", (_, spans) => {
  const { faults, lanes } = layFaults(spans, time, RIGHT);
  for (const one of faults) {
    expect(one.lane).toBeLessThan(lanes);
    expect(extent(one)[1]).toBeLessThanOrEqual(RIGHT + 1);
    for (const other of faults) {
      if (one === other || one.lane !== other.lane) continue;
      expect(extent(one)[0] >= extent(other)[1] || extent(one)[1] <= extent(other)[0]).toBe(true);
    }
  }
});

test("faults that last at the same time keep their labels when they need separate rows anyway", () => {
  const { faults, lanes } = layFaults(
    Array.from({ length: 12 }, (_, i) => span(i + 1, i * 1_000, 90_000)),
    time,
    RIGHT,
  );
  expect(lanes).toBe(12);
  expect(faults[3]?.label).toBe("#4 kill cell1-conductor-4");
});

test("bands show how many faults lasted at each time, and include faults of no length", () => {
  expect(faultBands([span(1, 0, 10), span(2, 5, 20), span(3, 30, 30)])).toEqual(
    [
      { fromMs: 0, toMs: 5, faults: 1 },
      { fromMs: 5, toMs: 10, faults: 2 },
      { fromMs: 10, toMs: 20, faults: 1 },
      { fromMs: 30, toMs: 30, faults: 1 },
    ].map((band) => expect.objectContaining(band)),
  );
});
