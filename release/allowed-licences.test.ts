import { expect, test } from "vitest";
import { isAllowedLicence } from "./allowed-licences.ts";

test.each([
  ["MIT", true],
  ["(Apache-2.0 AND BSD-3-Clause)", true],
  ["MIT OR GPL-3.0-only", true],
  ["(MIT AND GPL-3.0-only)", false],
  ["GPL-3.0-only", false],
  ["(MIT OR GPL-3.0-only) AND ISC", false],
  ["", false],
  [undefined, false],
])("the licence %s is allowed: %s", (expression, is) => {
  expect(isAllowedLicence(expression)).toBe(is);
});
