import { describe, expect, test } from "vitest";
import fc from "../../test/rigs/property.ts";
import { GuestTable } from "./guest-table.ts";
import type { JournalRecord } from "./journal.ts";

const name = (attempt: number, host = "h") => ({ host, serverUuid: `s${attempt % 3}`, attemptId: `t${attempt}/0` });

const record: fc.Arbitrary<JournalRecord> = fc
  .tuple(fc.nat({ max: 5 }), fc.constantFrom("h", "i"), fc.nat({ max: 3 }), fc.nat({ max: 1_000 }))
  .map(([attempt, host, kind, atMs]) => {
    const of = name(attempt, host);
    if (kind === 0) return { kind: "gone", ...of };
    if (kind === 1) return { kind: "tombstone", ...of, attemptId: atMs % 2 === 0 ? "" : of.attemptId, atMs };
    if (kind === 2) return { kind: "failed", ...of, failure: "reschedule", reason: "x", atMs };
    return { kind: "guest", ...of, state: (["building", "prepared", "running"] as const)[atMs % 3]!, atMs };
  });

/** `sinceOf` gives the time at which each record arrives. */
function fold(records: readonly JournalRecord[], sinceOf: (index: number) => number = (index) => index): GuestTable {
  const table = new GuestTable();
  for (const [index, one] of records.entries()) table.apply(one, sinceOf(index));
  return table;
}

describe("the table of guests", () => {
  test("rebuilds the same table from its own records", () => {
    fc.assert(
      fc.property(fc.array(record), (records) => {
        const table = fold(records);
        expect(fold(table.records()).records()).toEqual(table.records());
      }),
    );
  });

  test("a guest that was found stays so until it obeys an order, whatever else becomes known of it", () => {
    const guest = { kind: "guest", ...name(1), atMs: 0 } as const;
    const isFound = (...later: JournalRecord[]) => {
      const [record] = fold([{ ...guest, state: "running", isFound: true }, ...later]).records();
      return record?.kind === "guest" && record.isFound === true;
    };
    expect(isFound({ ...guest, state: "stopped", cause: "shut-down" })).toBe(true);
    expect(isFound({ ...guest, state: "stopped", revision: undefined })).toBe(true);
    expect(isFound({ ...guest, state: "stopped", revision: 3 })).toBe(false);
    // The first start of a build.
    expect(isFound({ ...guest, state: "running", revision: 0 })).toBe(false);
    expect(isFound({ ...guest, state: "running", revision: 0 }, { ...guest, state: "running" })).toBe(false);
    expect(isFound({ kind: "gone", ...name(1) }, { ...guest, state: "running" })).toBe(false);
  });

  test("a tombstone of a server covers all of its attempts, and one of an attempt only that attempt", () => {
    const table = fold([
      { kind: "tombstone", ...name(1), atMs: 1 },
      { kind: "tombstone", ...name(2), attemptId: "", atMs: 1 },
    ]);
    const buried = [name(1), { ...name(1), attemptId: "t9/0" }, { ...name(2), attemptId: "t9/0" }, name(2, "other")];
    expect(buried.map((of) => table.isBuried(of))).toEqual([true, false, true, false]);
  });

  test("forgets old or surplus tombstones and failed attempts by their age here, whatever their dates, and never forgets guests", () => {
    const failed = (attempt: number): JournalRecord => ({
      kind: "failed",
      ...name(attempt),
      failure: "abort",
      reason: "",
      atMs: 0,
    });
    const since = [0, 5, 20, 21, 5, 20];
    const table = fold(
      [
        { kind: "guest", ...name(0), state: "running", atMs: 0 },
        failed(1),
        failed(2),
        failed(3),
        { kind: "tombstone", ...name(4), atMs: 1_000 },
        { kind: "tombstone", ...name(5), atMs: 0 },
      ],
      (index) => since[index] ?? 0,
    );
    table.forget(10, 1);
    expect(table.all().map((entry) => entry.attemptId)).toEqual(["t0/0", "t3/0"]);
    expect([table.isBuried(name(4)), table.isBuried(name(5))]).toEqual([false, true]);
  });
});
