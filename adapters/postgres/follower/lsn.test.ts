import { describe, expect, it } from "vitest";
import { formatLsn, parseLsn } from "./lsn.ts";

describe("a log position", () => {
  it("reads back its own notation", () => {
    for (const text of ["0/0", "0/14E2A58", "16/B374D848", "1FFFFF/FFFFFFFF"])
      expect(formatLsn(parseLsn(text))).toBe(text);
  });

  it("compares as bytes of log, across the upper half too", () => {
    expect(parseLsn("1/0")).toBe(2 ** 32);
    expect(parseLsn("00000001/00000001")).toBeGreaterThan(parseLsn("0/FFFFFFFF"));
  });

  it("refuses a text that is not a position", () => {
    for (const text of ["", "1", "1/", "G/0", "1/000000000"])
      expect(() => parseLsn(text)).toThrow("not a log position");
    expect(() => parseLsn("FFFFFFFF/0")).toThrow("beyond 2^53");
  });
});
