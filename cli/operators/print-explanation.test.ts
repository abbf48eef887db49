import { describe, expect, it } from "vitest";
import { parseHints } from "./explain.ts";
import type { ShownExplanation } from "./explain-answer.ts";
import { decisionsText, explanationText } from "./print-explanation.ts";

const ANSWER: ShownExplanation = {
  ...{ refusal: null, hosts: 3, cells: [], nearest: [], host: null, cells_not_searched: ["far"] },
  steps: [
    {
      ...{ step: "host", left: 1 },
      removed: [
        { why: "down", hosts: 1 },
        { why: "disabled", hosts: 1 },
      ],
    },
    { step: "placement", left: 1, removed: [] },
  ],
  ranked: [{ cell: "one", host: "a", weight: 2, parts: { ram: [131_072, 1, 2] } }],
  servers: [{ cell: "one", host: "a", alternates: [] }],
};

describe("explanations in the form that people read", () => {
  it("have a row for each reason, and a column for each weigher", () => {
    const text = explanationText(ANSWER, null).split("\n");
    expect(text.slice(0, 5)).toEqual([
      "STEP       LEFT  REMOVED  WHY",
      "           3",
      "host       1     1        down",
      "                 1        disabled",
      "placement  1",
    ]);
    expect(text).toContain("1  a     one   2       131072, 1 × 2");
    expect(text).toContain("1  a            one   none");
    expect(text.join("\n")).toContain("not searched, because their ledger views are not loaded: far");
  });

  it("say of a requested host what each step decides, or that the host is unknown", () => {
    const lacks = [{ class: "VCPU", requested: 4, free: 1, provider: "h" }];
    const host = { cell: "one", host: "h", steps: [{ step: "placement", why: "not enough VCPU" }], lacks };
    const text = explanationText({ ...ANSWER, host }, "h");
    expect(text).toContain("h (cell one) would not be chosen");
    expect(text).toContain("VCPU: 4 asked for, 1 free at h");
    expect(explanationText(ANSWER, "x")).toContain("No cell with a loaded ledger view knows a host x.");
    const good = { ...host, steps: [{ step: "placement", why: null }], lacks: [] };
    expect(explanationText({ ...ANSWER, host: { ...good, host: "a" } }, "a")).toContain("a (cell one) would be taken");
  });

  it("show a refusal together with the cells that did not answer", () => {
    const decision = {
      ...({ outcome: "refused", tries: 1, lostRaces: 2, looks: 1, viewLagMs: null } as const),
      ...{ hosts: 3, steps: ANSWER.steps, cells: [], nearest: [], unseen: ["far"] },
    };
    const record = { server: "s", request_id: "req-1", scheduler: "x", at: "2026-01-01T00:00:00Z", decision };
    const text = decisionsText({ decisions: [record] });
    expect(text).toContain("no valid host\nhosts tried: 1, races lost: 2, second looks: 1\n");
    expect(text).toContain("no answer from cell far");
  });
});

describe("hints", () => {
  it("are read one by one, and a repeated name has several values", () => {
    expect(parseHints("same_host=a,same_host=b,group=g")).toEqual({ same_host: ["a", "b"], group: ["g"] });
    expect(parseHints('query=[">=","$free_ram_mb",1],cidr=/24')).toEqual({
      query: ['[">=","$free_ram_mb",1]'],
      cidr: ["/24"],
    });
    expect(() => parseHints("same_host")).toThrow("is not KEY=VALUE");
  });
});
