import { describe, expect, it } from "vitest";
import type { Violation } from "./violation.ts";
import { ViolationTracker } from "./violation-tracker.ts";

const violation = (where: string, proof = "p"): Violation => ({ law: 2, what: "w", where, proof });
const at = (atMs: number, isComplete = true) => ({ atMs, at: new Date(atMs).toISOString(), isComplete });
const SINCE = "1970-01-01T00:00:00.000Z";

describe("readings of a cloud under load", () => {
  it("keep persistent violations, with the latest proof and the first time, and drop those of work in flight", () => {
    const tracker = new ViolationTracker(1_000);
    expect(tracker.observe([violation("here", "first"), violation("there")], at(0))).toEqual({
      confirmed: [],
      gone: [],
    });
    const changes = tracker.observe([violation("here", "second"), violation("elsewhere")], at(1_000));
    expect(changes).toEqual({ confirmed: [{ ...violation("here", "second"), since: SINCE }], gone: [] });
    expect(tracker.standing).toEqual(changes.confirmed);
    expect(tracker.suspects).toBe(true);
  });

  it("confirm no violation before it has lasted", () => {
    const tracker = new ViolationTracker(1_000);
    for (const ms of [0, 400, 800]) expect(tracker.observe([violation("here")], at(ms)).confirmed).toEqual([]);
    expect(tracker.observe([violation("here")], at(1_200)).confirmed).toHaveLength(1);
    expect(tracker.observe([violation("here")], at(1_600)).confirmed).toEqual([]);
  });

  it("start again with a violation that was away in between", () => {
    const tracker = new ViolationTracker(0);
    tracker.observe([violation("here")], at(0));
    tracker.observe([], at(1));
    expect(tracker.observe([violation("here")], at(2)).confirmed).toEqual([]);
  });

  it("report once that a confirmed violation is gone", () => {
    const tracker = new ViolationTracker(0);
    tracker.observe([violation("here")], at(0));
    tracker.observe([violation("here")], at(1));
    expect(tracker.observe([], at(2)).gone).toEqual([{ ...violation("here"), since: SINCE }]);
    expect(tracker.observe([], at(3)).gone).toEqual([]);
    expect(tracker.standing).toEqual([]);
  });

  it("conclude nothing from a cell that could not be read", () => {
    const tracker = new ViolationTracker(0);
    tracker.observe([violation("here")], at(0));
    tracker.observe([violation("here")], at(1));
    expect(tracker.observe([], at(2, false)).gone).toEqual([]);
    expect(tracker.standing).toHaveLength(1);
  });
});
