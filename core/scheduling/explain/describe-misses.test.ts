import { expect, test } from "vitest";
import type { KeptMiss } from "./decision.ts";
import { describeMisses } from "./describe-misses.ts";

const miss = (host: string, lacks: KeptMiss["lacks"] = []): KeptMiss => ({ cell: "c", host, why: "disabled", lacks });

test("names what each of the nearest hosts lacked or why it was left out, for at most three hosts", () => {
  const short = [{ class: "VCPU", requested: 8, free: 2, provider: "p" }];
  expect(describeMisses([miss("a", short), miss("b"), miss("c"), miss("d")])).toBe(
    "Nearest: a of c (VCPU: 8 asked for, 2 free); b of c (disabled); c of c (disabled).",
  );
  expect(describeMisses([])).toBe("");
});
