import { expect, test } from "vitest";
import { attemptsIn, exhaustedBuildMessage, keptReason } from "./failure-message.ts";

test("keeps a reason unchanged, except for characters that a database refuses and text beyond the limit", () => {
  expect(keptReason("line 1\n\tline 2: déjà vu 😀")).toBe("line 1\n\tline 2: déjà vu 😀");
  expect(keptReason("nul \u0000, escape \u001b")).toBe("nul \ufffd, escape \ufffd");
  expect(keptReason("x".repeat(50_000))).toHaveLength(10_000);
});

test("finds the hosts with their reasons in the fault of a build whose attempts all failed", () => {
  const failed = { selection: 0, host: "h1", result: "failed", reason: "disk: full" } as const;
  const skipped = { selection: 1, host: "h2", result: "skipped", reason: "no room" } as const;
  expect(attemptsIn(exhaustedBuildMessage([failed, skipped], null))).toBe("h1: disk: full; h2: not tried, no room");
  expect(attemptsIn(exhaustedBuildMessage([failed], ["h3"]))).toBe("h1: disk: full; h3: left untried");
  expect(attemptsIn(exhaustedBuildMessage([skipped], null))).toBe("h2: not tried, no room");
  expect(attemptsIn("Build failed on h1: no image")).toBe("Build failed on h1: no image");
});
