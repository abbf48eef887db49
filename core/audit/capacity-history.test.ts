import { describe, expect, it } from "vitest";
import {
  CapacityHistory,
  type HistoryRow,
  OVER_CAPACITY_MOMENT,
  UNEQUAL_MOMENT,
  UNOFFERED_MOMENT,
} from "./capacity-history.ts";

const place = { providerId: 1, classId: 2 };
const inventory = (used: number, capacity = 8): HistoryRow => ({ kind: "inventory-put", ...place, capacity, used });
const put = (consumer: string, amount: number): HistoryRow => ({ kind: "allocation-put", ...place, consumer, amount });
const removed = (consumer: string): HistoryRow => ({ kind: "allocation-removed", ...place, consumer });

function history(...loaded: readonly HistoryRow[]): (...rows: readonly HistoryRow[]) => readonly string[] {
  const made = new CapacityHistory();
  made.load(loaded);
  return (...rows) => made.commit(rows).map(({ what, proof }) => `${what}: ${proof}`);
}

describe("the history of a ledger", () => {
  it("is in order while every transaction writes both sides", () => {
    const commit = history(inventory(3), put("a", 3));
    expect(commit(put("b", 5), inventory(8))).toEqual([]);
    expect(commit(removed("a"), inventory(5))).toEqual([]);
    expect(commit(put("b", 2), inventory(2))).toEqual([]);
  });

  it("reports once a moment over capacity that a later transaction ends", () => {
    const commit = history(inventory(8), put("a", 8));
    expect(commit(inventory(10), put("b", 2))).toEqual([`${OVER_CAPACITY_MOMENT}: 10 of 8: a claim took it there`]);
    expect(commit(inventory(9), put("b", 1))).toEqual([]);
    expect(commit(inventory(8), removed("b"))).toEqual([]);
    expect(commit(inventory(9), put("b", 1))).toHaveLength(1);
  });

  it("judges the end of a transaction, not the states on the way", () => {
    const commit = history(inventory(8), put("a", 8));
    expect(commit(inventory(16), put("b", 8), removed("a"), inventory(8))).toEqual([]);
  });

  it("distinguishes a host that shrank from a claim beyond the capacity", () => {
    const commit = history(inventory(8), put("a", 8));
    expect(commit(inventory(8, 4))).toEqual([]);
    expect(commit(inventory(9, 4), put("b", 1))).toEqual([`${OVER_CAPACITY_MOMENT}: 9 of 4: a claim took it there`]);
  });

  it("reports a claim that is not counted in `used`, and one that is counted twice", () => {
    const commit = history(inventory(3), put("a", 3));
    expect(commit(put("b", 2))).toEqual([`${UNEQUAL_MOMENT}: used says 3, the allocations add up to 5`]);
    expect(commit(inventory(7))).toEqual([`${UNEQUAL_MOMENT}: used says 7, the allocations add up to 5`]);
    expect(commit(inventory(5))).toEqual([]);
  });

  it("reports allocations of inventories that do not exist", () => {
    expect(history()(put("a", 1))).toEqual([`${UNOFFERED_MOMENT}: 1 allocated, no such inventory`]);
  });

  it("leaves violations that began before the history to the audit of the present", () => {
    const commit = history(inventory(9), put("a", 2));
    expect(commit(put("c", 1), inventory(10))).toEqual([`${OVER_CAPACITY_MOMENT}: 10 of 8: a claim took it there`]);
    expect(commit(removed("c"), inventory(9))).toEqual([]);
  });
});
