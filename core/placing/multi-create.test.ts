import { describe, expect, test } from "vitest";
import { isPlacedByOthers, judgeMultiCreate, type PlacedServerEnd } from "./multi-create.ts";

const unplaced = (cell: string | null = null): PlacedServerEnd => ({ kind: "unplaced", fault: "No host.", cell });
const judge = (minCount: number, ends: readonly PlacedServerEnd[], servers = ends.length) =>
  judgeMultiCreate({ minCount, servers, ends: ends.map((end, index) => ({ serverUuid: `s${index}`, end })) });

describe("the servers of one call", () => {
  test("are enough when at least min_count have found a host, including those found in their cells", () => {
    expect(judge(2, [{ kind: "placed" }, { kind: "present" }, unplaced()])).toEqual({
      kind: "enough",
      found: 2,
      wanted: 2,
    });
  });

  test("are otherwise too few, and the fault gives the reason and the number", () => {
    expect(judge(2, [{ kind: "placed" }, unplaced("one")])).toEqual({
      kind: "short",
      fault: "No host. Only 1 of at least 2 servers of this call found a host, so all of them were released.",
      ...{ found: 1, wanted: 2, at: new Map([["s1", "one"]]) },
    });
  });

  test("are not yet too few while one of them will be tried again", () => {
    expect(judge(2, [unplaced(), { kind: "later", why: "a cell is away" }])).toMatchObject({
      kind: "wait",
      why: "a cell is away",
    });
  });

  test("need fewer hosts when some of them were deleted, before the call was read or while it was placed", () => {
    expect(judge(3, [{ kind: "placed" }, { kind: "over" }], 3)).toMatchObject({ kind: "enough" });
    expect(judge(3, [unplaced(), { kind: "over" }], 3)).toMatchObject({ kind: "short", found: 0, wanted: 1 });
    expect(judge(1, [{ kind: "over" }])).toMatchObject({ kind: "enough" });
  });

  test("are placed by another scheduler when an open one was meanwhile assigned elsewhere", () => {
    const at = new Map([["s1", "one"]]);
    const record = (state: "dispatched" | "cancelled", cell: string) => [{ serverUuid: "s1", state, cell }];
    expect(isPlacedByOthers(record("dispatched", "one"), at)).toBe(false);
    expect(isPlacedByOthers(record("dispatched", "two"), at)).toBe(true);
    expect(isPlacedByOthers(record("cancelled", "two"), at)).toBe(false);
  });
});
