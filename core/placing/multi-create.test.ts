import { describe, expect, test } from "vitest";
import { isPlacedByOthers, judgeMultiCreate, mayAwaitGroup, type PlacedServerEnd } from "./multi-create.ts";

const unplaced = (cell: string | null = null): PlacedServerEnd => ({
  kind: "unplaced",
  fault: "No host.",
  cell,
  awaitsGroup: false,
});
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
      ...{ found: 1, wanted: 2, at: new Map([["s1", "one"]]), awaitsGroup: false },
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

  test("may become enough when every missing server waits for its group", () => {
    const awaiting: PlacedServerEnd = { kind: "unplaced", fault: "No host.", cell: null, awaitsGroup: true };
    expect(judge(2, [{ kind: "placed" }, awaiting])).toMatchObject({ kind: "short", awaitsGroup: true });
    expect(judge(3, [{ kind: "placed" }, awaiting, unplaced()])).toMatchObject({ kind: "short", awaitsGroup: false });
  });

  test("are placed by another scheduler when an open one was meanwhile assigned elsewhere", () => {
    const at = new Map([["s1", "one"]]);
    const record = (state: "dispatched" | "cancelled", cell: string) => [{ serverUuid: "s1", state, cell }];
    expect(isPlacedByOthers(record("dispatched", "one"), at)).toBe(false);
    expect(isPlacedByOthers(record("dispatched", "two"), at)).toBe(true);
    expect(isPlacedByOthers(record("cancelled", "two"), at)).toBe(false);
  });
});

describe("a call that found too few hosts", () => {
  const older = { id: "b", createdAtMs: 1 };
  const younger = { id: "a", createdAtMs: 2 };
  const others = (...calls: readonly (typeof older)[]) => ({ inFlight: true, calls });

  test("waits for settled calls and single servers of its group, but not when nobody is in flight", () => {
    expect(mayAwaitGroup({ ...older, found: 1 }, others())).toBe(true);
    expect(mayAwaitGroup({ ...older, found: 1 }, { inFlight: false, calls: [] })).toBe(false);
  });

  test("waits for younger calls only, as long as it holds a host, so that no two calls wait for each other", () => {
    expect(mayAwaitGroup({ ...older, found: 1 }, others(younger))).toBe(true);
    expect(mayAwaitGroup({ ...younger, found: 1 }, others(older))).toBe(false);
    expect(mayAwaitGroup({ ...younger, found: 0 }, others(older))).toBe(true);
  });

  test("is compared by its id with a call of the same time", () => {
    const twin = { ...older, id: "c" };
    expect([
      mayAwaitGroup({ ...older, found: 1 }, others(twin)),
      mayAwaitGroup({ ...twin, found: 1 }, others(older)),
    ]).toEqual([true, false]);
  });
});
