import { expect, test } from "vitest";
import { keptReason } from "./failure-message.ts";

test("keeps a reason unchanged, except for characters that a database refuses and text beyond the limit", () => {
  expect(keptReason("line 1\n\tline 2: déjà vu 😀")).toBe("line 1\n\tline 2: déjà vu 😀");
  expect(keptReason("nul \u0000, escape \u001b")).toBe("nul \ufffd, escape \ufffd");
  expect(keptReason("x".repeat(50_000))).toHaveLength(10_000);
});
