import { describe, expect, test } from "vitest";
import { madeUpHistory } from "../../test/rigs/made-up-history.ts";
import type { HistoryLine } from "../history-line.ts";
import { figuresOf } from "./figures.ts";
import { percentilesOf } from "./percentiles.ts";
import { readHistory } from "./read-history.ts";

const who = "client-1";
/** A create that is accepted 10 ms after the request, and ACTIVE `buildMs` later, or never when that is null. */
const created = (id: number, atMs: number, buildMs: number | null, reasons: readonly string[] = []): HistoryLine[] => {
  const server = `server-${id}`;
  const lines: HistoryLine[] = [
    { atMs, who, what: "invoke", op: "create", id },
    { atMs: atMs + 10, who, what: "ok", op: "create", id, server, ms: 10, status: 202 },
  ];
  if (buildMs === null) return lines;
  const state = { atMs: atMs + 10 + buildMs, who, what: "state", server, ms: buildMs } as const;
  return [...lines, { ...state, state: "ACTIVE", host: "h", attempts: reasons.length + 1, reasons }];
};
const fault = (faultId: number, fromMs: number, toMs: number | null): HistoryLine[] => {
  const about = { who: "nemesis", fault: "kill", faultId, target: "conductor" } as const;
  const begins: HistoryLine = { atMs: fromMs, what: "fault-begins", ...about };
  return toMs === null ? [begins] : [begins, { atMs: toMs, what: "fault-ends", ...about }];
};

describe("figures of a chaos run", () => {
  test("percentiles are times that occurred", () => {
    expect(percentilesOf([])).toBeNull();
    expect(percentilesOf([7])).toEqual({ count: 1, p50: 7, p90: 7, p99: 7, max: 7 });
    const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect(percentilesOf(hundred)).toEqual({ count: 100, p50: 50, p90: 90, p99: 99, max: 100 });
  });

  test("work under way at any moment of a fault counts as during the fault, not before or after", () => {
    const { faults } = figuresOf([
      ...created(1, 100, 200),
      ...created(2, 900, 500), // This one ends during the fault.
      ...created(3, 1_500, 3_000), // This one ends after the fault.
      ...created(4, 2_500, 40),
      ...fault(1, 1_000, 2_000),
    ]);
    const [one] = faults;
    expect(one?.before?.creates).toMatchObject({ count: 1, max: 200 });
    expect(one?.during.creates).toMatchObject({ count: 2, max: 3_000 });
    expect(one?.after?.creates).toMatchObject({ count: 1, max: 40 });
    expect(one?.during.answers).toMatchObject({ count: 1 });
  });

  test("before and after extend to the nearest beginning or end of another fault", () => {
    const { faults } = figuresOf([...fault(1, 1_000, 2_000), ...fault(2, 3_000, null), ...created(1, 3_500, 500)]);
    expect(faults[0]?.after).toMatchObject({ fromMs: 2_000, toMs: 3_000 });
    expect(faults[1]?.before).toMatchObject({ fromMs: 2_000, toMs: 3_000 });
    expect(faults[1]?.span).toMatchObject({ ended: false, toMs: 4_010 });
    expect(faults[1]?.after).toBeNull();
  });

  test("all faults together: before the first, during any, after the last", () => {
    const { allFaults } = figuresOf([
      ...created(1, 100, 200),
      ...created(2, 1_100, 50),
      ...created(3, 2_200, 50), // This one is between the two faults.
      ...created(4, 3_100, 70),
      ...created(5, 4_500, 90),
      ...fault(1, 1_000, 2_000),
      ...fault(2, 3_000, 4_000),
    ]);
    expect(allFaults?.before?.creates).toMatchObject({ count: 1, max: 200 });
    expect(allFaults?.during.creates).toMatchObject({ count: 2, max: 70 });
    expect(allFaults?.after?.creates).toMatchObject({ count: 1, max: 90 });
    expect(figuresOf(created(1, 0, 1)).allFaults).toBeNull();
  });

  test("servers are counted by their final state, and reasons by their words", () => {
    const history: HistoryLine[] = [
      ...created(1, 0, 100, ["cell-1-host-3 is gone", "the disk is full"]),
      ...created(2, 0, 100, ["cell-1-host-12 is gone"]),
      ...created(3, 0, null),
      ...created(4, 0, null),
      { atMs: 500, who, what: "state", server: "server-4", state: "ERROR", ms: 490, reasons: ["bad image"] },
      { atMs: 600, who, what: "invoke", op: "create", id: 9 },
      { atMs: 700, who, what: "refused", op: "create", id: 9, ms: 100, status: 503 },
      { atMs: 800, who, what: "invoke", op: "create", id: 10 },
    ];
    const { servers, builds, refusals, passed } = figuresOf(history);
    expect(servers).toMatchObject({ accepted: 4, active: 2, error: 1, stuck: 1, refused: 1, unknown: 1 });
    expect(builds.retries).toEqual([
      { reason: "… is gone", count: 2 },
      { reason: "the disk is full", count: 1 },
    ]);
    expect(builds.errors).toEqual([{ reason: "bad image", count: 1 }]);
    expect(builds.attempts).toEqual([
      { attempts: 2, servers: 1 },
      { attempts: 3, servers: 1 },
    ]);
    expect(refusals).toEqual([{ reason: "create: HTTP 503", count: 1 }]);
    expect(passed).toBeNull();
  });

  test("the longest time without service counts from when a client waits", () => {
    const { gap, createGap } = figuresOf([
      ...created(1, 0, null),
      { atMs: 5_000, who, what: "invoke", op: "list", id: 2 },
      { atMs: 6_000, who, what: "unknown", op: "list", id: 2, ms: 1_000 },
      { atMs: 7_000, who, what: "invoke", op: "list", id: 3 },
      { atMs: 7_500, who, what: "ok", op: "list", id: 3, ms: 500 },
    ]);
    expect(gap).toEqual({ fromMs: 5_000, toMs: 7_500 });
    expect(createGap).toEqual({ fromMs: 0, toMs: 10 });
  });

  test("a history is read back as it was written, except for a last line that was cut off", () => {
    const history = madeUpHistory({ creates: 5 });
    const text = history.map((line) => `${JSON.stringify(line)}\n`).join("");
    expect(readHistory(text)).toEqual(history);
    expect(readHistory(text.slice(0, -20))).toEqual(history.slice(0, -1));
    expect(() => readHistory(`${text}nonsense\n`)).toThrow(`line ${history.length + 1}: the line is not JSON`);
    expect(() => readHistory('{"atMs": 0}\n')).toThrow("line 1: what: is missing");
    const malformed = (fields: object) => () => readHistory(`${text}${JSON.stringify({ ...fields, atMs: 1 })}\n`);
    const last = `line ${history.length + 1}`;
    expect(malformed({ who: "client-1", what: "ok", op: "create", id: 1, ms: "5" })).toThrow(
      `${last}: ms: must be number`,
    );
    expect(malformed({ who: "client-1", what: "invoke", op: "boot", id: 1 })).toThrow(`${last}: op: `);
    expect(malformed({ who: "runner", what: "end", passed: true })).toThrow(
      `${last}: must have required properties failures`,
    );
    expect(malformed({ who: "x", what: "toString" })).toThrow(`${last}: what: toString is none of start, `);
    expect(() => readHistory("")).toThrow("the history is empty");
  });
});
