import { describe, expect, test } from "vitest";
import type { FoundViolation } from "../core/audit/violation.ts";
import { LawBoard } from "./law-board.ts";
import type { CloudReading } from "./read-cloud.ts";

const violation = (law: FoundViolation["law"], where: string): FoundViolation => ({
  ...{ law, where, what: "an allocation of nobody", proof: "VCPU 2", since: "2026-01-01T00:00:00.000Z" },
});

/** A reading of one cell with two hosts, of which the given number have reported their guests. */
function reading(told: number, given: Partial<CloudReading> = {}): CloudReading {
  const counts = { providers: 2, consumers: 0, servers: 0, requests: 0, hosts: 2, hostsAsked: told, attachments: null };
  const all = { violations: [], cells: ["north"], counts, isEveryHostAsked: told === 2 };
  return { ...all, unread: new Map(), unreadGuests: new Map(), unreadCinder: null, ...given };
}

describe("the state of the laws", () => {
  test("is unknown before the first complete reading, and then has the time of that reading", () => {
    const board = new LawBoard();
    expect(board.laws()).toBeNull();
    expect(board.read(reading(2, { unread: new Map([["north", "no answer"]]) }), 1)).toBe(false);
    expect(board.laws()).toBeNull();
    expect(board.read(reading(2), 2)).toBe(true);
    expect(board.laws()).toEqual({ at: 2, broken: [], unchecked: [] });
    board.read(reading(2, { unread: new Map([["north", "no answer"]]) }), 3);
    expect(board.laws()?.at).toBe(2);
  });

  test("lists each violation as long as it lasts", () => {
    const board = new LawBoard();
    board.take({ kind: "broken", violation: violation(2, "cell north"), isPast: false }, 0);
    board.take({ kind: "broken", violation: violation("groups", "group g"), isPast: false }, 0);
    board.take({ kind: "broken", violation: violation("volumes", "volume v"), isPast: false }, 0);
    board.read(reading(2), 1);
    expect(board.laws()?.broken).toEqual([
      { law: 2, subject: "cell north", evidence: "an allocation of nobody (VCPU 2)" },
      { law: 0, subject: "group g", evidence: "an allocation of nobody (VCPU 2)" },
      { law: "volumes", subject: "volume v", evidence: "an allocation of nobody (VCPU 2)" },
    ]);
    board.take({ kind: "gone", violation: violation(2, "cell north") }, 0);
    expect(board.laws()?.broken.map(({ law }) => law)).toEqual([0, "volumes"]);
  });

  test("lists a violation that was over after a moment for ten minutes", () => {
    const board = new LawBoard();
    board.take({ kind: "broken", violation: violation(1, "cell north"), isPast: true }, 1_000);
    board.read(reading(2), 600_999);
    expect(board.laws()?.broken).toHaveLength(1);
    board.read(reading(2), 601_000);
    expect(board.laws()?.broken).toEqual([]);
  });

  test("says nothing about laws 4 and 6 while a host has not reported its guests", () => {
    const board = new LawBoard();
    board.read(reading(1), 1);
    expect(board.laws()?.unchecked).toEqual([4, 6]);
    board.read(reading(2, { unreadGuests: new Map([["agent x", "no answer"]]) }), 2);
    expect(board.laws()?.unchecked).toEqual([4, 6]);
    board.read(reading(2), 3);
    expect(board.laws()?.unchecked).toEqual([]);
  });

  test("is not renewed while a cell's history is lost", () => {
    const board = new LawBoard();
    board.take({ kind: "unread", source: "history of cell north", reason: "connection lost" }, 0);
    board.take({ kind: "unread", source: "agent x", reason: "no answer" }, 0);
    expect(board.read(reading(2), 1)).toBe(false);
    board.take({ kind: "read", source: "history of cell north" }, 0);
    expect(board.read(reading(2), 2)).toBe(true);
  });
});
