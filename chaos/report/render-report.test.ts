import { describe, expect, test } from "vitest";
import { type MadeUpFault, madeUpHistory } from "../../test/rigs/made-up-history.ts";
import type { HistoryLine } from "../history-line.ts";
import { renderReport } from "./render-report.ts";

const FAULTS: readonly MadeUpFault[] = [
  { fault: "kill", target: "conductor-cell-1/1", from: 8, to: 12 },
  { fault: "cut", target: "schedulers → cell-1/nats", from: 20, to: 30 },
];

/** Tags that are opened and not closed, or closed and not opened. */
function unbalanced(page: string): readonly string[] {
  const open: string[] = [];
  const wrong: string[] = [];
  const body = page.replace(/<style>.*?<\/style>/s, "");
  for (const [, close, name = "", rest = ""] of body.matchAll(/<(\/?)([a-z][a-z0-9]*)\b([^>]*)>/g)) {
    if (["meta", "br"].includes(name) || rest.endsWith("/")) continue;
    if (close === "") open.push(name);
    else if (open.pop() !== name) wrong.push(name);
  }
  return [...wrong, ...open];
}

describe("the report of a chaos run", () => {
  test("contains every fault, law and figure, and is well-formed", () => {
    const page = renderReport(madeUpHistory({ faults: FAULTS }));
    expect(unbalanced(page)).toEqual([]);
    for (const text of [
      "made-up",
      "passed",
      "#1 kill",
      "schedulers → cell-1/nats",
      "5. Every accepted",
      "the disk is full",
    ])
      expect(page).toContain(text);
    expect(page.match(/class="during"/g)).toHaveLength(1 + FAULTS.length);
  });

  test("is self-contained, without scripts or external resources", () => {
    const page = renderReport(madeUpHistory({ faults: FAULTS }));
    expect(page).not.toMatch(/<script|<link|<img|<iframe|@import|url\(|\bon[a-z]+=|https?:/i);
  });

  test("escapes everything that comes from a history", () => {
    const evil = `</title><script>alert(1)</script><b a="'>&\u0000`;
    const history = madeUpHistory({ faults: [{ ...FAULTS[0]!, target: evil, detail: evil }], reasons: [evil] }).map(
      (line): HistoryLine => {
        if (line.what === "start") return { ...line, plan: evil, parts: [evil] };
        if (line.what === "verdict") return { ...line, holds: false, violations: [evil] };
        if (line.what === "end") return { ...line, passed: false, failures: [evil] };
        if (line.what === "state") return { ...line, server: `${evil}${line.server}`, host: evil };
        return line.what === "refused" ? { ...line, reason: evil } : line;
      },
    );
    const page = renderReport(history);
    expect(page).not.toContain("<script");
    expect(page).not.toContain("\u0000");
    expect(unbalanced(page)).toEqual([]);
    expect(page).toContain("&lt;script&gt;");
  });

  test("does not grow with the number of requests", () => {
    const few = renderReport(madeUpHistory({ creates: 800, faults: FAULTS })).length;
    const many = renderReport(madeUpHistory({ creates: 4_000, faults: FAULTS })).length;
    expect(many).toBeLessThan(few * 1.2);
  });

  test.each([
    ["only begins", madeUpHistory({ creates: 0 }).slice(0, 1)],
    ["has no beginning", madeUpHistory({ creates: 3 }).slice(1)],
    ["was broken off in a fault", madeUpHistory({ faults: FAULTS }).filter(({ atMs }) => atMs < 25_000)],
  ])("shows a run that %s", (_, history) => {
    const page = renderReport(history);
    expect(unbalanced(page)).toEqual([]);
    expect(page).not.toMatch(/NaN|Infinity|undefined/);
  });

  test("is the same for the same history", () => {
    const history = madeUpHistory({ faults: FAULTS });
    expect(renderReport(history)).toBe(renderReport(history));
  });
});
