import { expect, test } from "vitest";
import packageJson from "../package.json" with { type: "json" };
import { versionText } from "./version-text.ts";

test("names the version of the package", () => {
  expect(versionText()).toBe(`berth ${packageJson.version}`);
});
