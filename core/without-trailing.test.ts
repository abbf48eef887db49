import { expect, test } from "vitest";
import { withoutTrailing } from "./without-trailing.ts";

test("takes the given characters from the end of a text, and from nowhere else", () => {
  expect(withoutTrailing("/servers//", "/")).toBe("/servers");
  expect(withoutTrailing("-a.b-.-", ".-")).toBe("-a.b");
  expect(withoutTrailing("///", "/")).toBe("");
  expect(withoutTrailing("", "/")).toBe("");
  const long = `${"/".repeat(1_000_000)}y`;
  expect(withoutTrailing(long, "/") === long).toBe(true);
});
