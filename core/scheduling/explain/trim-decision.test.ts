import { describe, expect, it } from "vitest";
import { resourceClass } from "../../ledger/ids.ts";
import type { WeightPart } from "../ranking/class-weights.ts";
import { placedDecision, refusedDecision } from "./decision.ts";
import { funnelOf } from "./funnel.ts";
import { bytesOf, trimDecision } from "./trim-decision.ts";

const EFFORT = { tries: 3, lostRaces: 2, looks: 1, viewLagMs: 12.345 };
const LONG = "ü".repeat(300);
const part = (index: number): WeightPart => ({
  ...{ weigher: `weigher_of_some_name_${index}`, raw: 123_456.789 / (index + 1) },
  ...{ normalised: 1 / (index + 3), multiplier: 1.5 },
});
const hugePlaced = (hosts: number, parts: number) =>
  placedDecision(
    {
      ...{ cell: "one", feasible: 99_999 },
      selections: Array.from({ length: hosts }, (_, index) => ({ host: `${index}-${LONG}` })),
      weights: Array.from({ length: hosts }, (_, index) => ({
        ...{ cell: "one", host: `${index}-${LONG}`, weight: 3 },
        parts: Array.from({ length: parts }, (_, at) => part(at)),
      })),
    },
    EFFORT,
  );
const hugeRefused = (cells: number, reasons: number) =>
  refusedDecision(
    {
      funnels: Array.from({ length: cells }, (_, cell) =>
        funnelOf(
          `cell-${cell}`,
          10_000,
          Array.from({ length: 20 }, (_, index) => `FilterOfSomeName${index}`),
          Array.from({ length: reasons }, (_, index) => ({
            refusal: { kind: "filtered", filter: `FilterOfSomeName${index % 20}`, why: `${index} ${LONG}` },
            trees: index + 1,
          })),
        ),
      ),
      misses: Array.from({ length: 5 }, (_, index) => ({
        ...{ cell: "cell-1", host: `${index}-${LONG}`, refusal: { kind: "host-down" } as const },
        lacks: ["VCPU", "MEMORY_MB", "DISK_GB"].map((name) => ({
          ...{ suffix: "", resourceClass: resourceClass(name), requested: 123_456, free: 12_345, provider: LONG },
        })),
      })),
      unseen: ["cell-x"],
    },
    EFFORT,
  );

describe("trimDecision", () => {
  it("leaves a small decision as it is", () => {
    const small = placedDecision(
      { cell: "one", feasible: 3, selections: [{ host: "a" }, { host: "b" }, { host: "b" }], weights: [] },
      EFFORT,
    );
    expect(trimDecision(small)).toBe(small);
    expect(small).toMatchObject({ host: "a", alternates: ["b"], tries: 3 });
  });

  it("brings the largest placements and refusals under 2,000 bytes", () => {
    for (const [hosts, parts] of [
      [3, 17],
      [20, 17],
      [20, 0],
    ] as const)
      expect(bytesOf(trimDecision(hugePlaced(hosts, parts)))).toBeLessThanOrEqual(2_000);
    for (const [cells, reasons] of [
      [1, 40],
      [4, 400],
      [200, 20],
      [200, 1_000],
    ] as const)
      expect(bytesOf(trimDecision(hugeRefused(cells, reasons)))).toBeLessThanOrEqual(2_000);
  });

  it("keeps the chosen host's own weights longest, and among them those that counted most", () => {
    const trimmed = trimDecision(hugePlaced(3, 17));
    if (trimmed.outcome !== "placed") throw new Error("it was placed");
    expect(trimmed.weights.map(({ host }) => host[0])).toEqual(["0"]);
    expect(Object.keys(trimmed.weights[0]?.parts ?? {})).toContain("weigher_of_some_name_0");
  });

  it("keeps the total number of hosts in the counts", () => {
    const whole = hugeRefused(2, 400);
    const trimmed = trimDecision(whole);
    if (trimmed.outcome !== "refused") throw new Error("it was refused");
    const countOf = (steps: typeof whole.steps) =>
      steps.reduce((sum, { removed }) => sum + removed.reduce((added, { hosts }) => added + hosts, 0), 0);
    expect(trimmed.hosts).toBe(20_000);
    expect(countOf(trimmed.steps)).toBe(countOf(whole.steps));
  });
});
