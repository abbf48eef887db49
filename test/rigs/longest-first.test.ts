import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { TestSpecification, Vitest } from "vitest/node";
import { LONGEST, LongestFirst } from "./longest-first.ts";

const ROOT = join(import.meta.dirname, "../..");

test("every file that is to begin first exists", () => {
  expect(LONGEST.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});

test("the longest files begin, in their order, and the others keep the order that Vitest gives them", async () => {
  const project = { name: "p", config: { isolate: true, sequence: { groupOrder: 0 } } };
  const specOf = (file: string) => ({ moduleId: join(ROOT, file), project }) as unknown as TestSpecification;
  const durations: Readonly<Record<string, number>> = { "p:a.test.ts": 1, "p:b.test.ts": 3 };
  const cache = { getFileTestResults: (key: string) => ({ failed: false, duration: durations[key] ?? 2 }) };
  const vitest = { cache, config: { root: ROOT } } as unknown as Vitest;
  const files = ["a.test.ts", LONGEST[1] ?? "", "b.test.ts", LONGEST[0] ?? ""].map(specOf);
  const sorted = await new LongestFirst(vitest).sort(files);
  expect(sorted).toEqual([LONGEST[0] ?? "", LONGEST[1] ?? "", "b.test.ts", "a.test.ts"].map(specOf));
});
