import { expect, test } from "vitest";
import { keptReason } from "./failure-message.ts";

test("keeps a reason as it came, but for what a database refuses and what is longer than anybody reads", () => {
  expect(keptReason("line 1\n\tline 2: déjà vu 😀")).toBe("line 1\n\tline 2: déjà vu 😀");
  expect(keptReason("nul \u0000, escape \u001b")).toBe("nul \ufffd, escape \ufffd");
  expect(keptReason("x".repeat(50_000))).toHaveLength(10_000);
});
