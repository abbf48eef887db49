import { expect, test } from "vitest";
import { type ReleasePapers, shortfallsOf } from "./shortfalls.ts";

const READY: ReleasePapers = {
  ...{
    tag: "v1.2.0",
    version: "1.2.0",
    license: "Apache-2.0",
    licenceText: "  Apache License\n  Version 2.0, January",
  },
  changelog: "# Changelog\n\n## 1.2.0 (2026-01-01)\n- A change.\n\n## 1.2.0-rc\n\n## 1.1.0\n- Another.\n",
  shipped: [{ path: "node_modules/a", licence: "MIT", isAllowed: true }],
  changedFiles: [],
};

test("nothing is missing when version, changelog, licences and the clone agree", () => {
  expect(shortfallsOf(READY)).toEqual([]);
});

test.each<readonly [Partial<ReleasePapers>, RegExp]>([
  [{ tag: "v1.3.0" }, /version 1\.2\.0, whose tag is v1\.2\.0/],
  [{ tag: "1.2.0" }, /whose tag is v1\.2\.0/],
  [{ changelog: "# Changelog\n\n## Unreleased\n- A change.\n" }, /no section "## 1\.2\.0"/],
  [{ changelog: "## 1.2.0\n\n## 1.1.0\n- Another.\n" }, /section "## 1\.2\.0" of CHANGELOG\.md is empty/],
  [{ licenceText: "MIT License" }, /says Apache-2\.0, and the file LICENSE has another licence/],
  [
    { shipped: [{ path: "node_modules/b", licence: "GPL-3.0", isAllowed: false }] },
    /node_modules\/b has the licence GPL-3\.0/,
  ],
  [{ changedFiles: [" M README.md"] }, /differs from its commit: {2}M README\.md/],
])("%j is said", (change, sentence) => {
  expect(shortfallsOf({ ...READY, ...change })).toEqual([expect.stringMatching(sentence)]);
});
