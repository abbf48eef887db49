import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { versionsIn, writeVersions } from "./versions.ts";

let into: string;
beforeEach(() => {
  into = mkdtempSync(join(tmpdir(), "berth-versions-"));
});
afterEach(() => rmSync(into, { recursive: true, force: true }));

function add(version: string): void {
  mkdirSync(join(into, version));
  writeFileSync(join(into, version, "search.json"), "[]");
}

test("lists the versions that the site has, the newest first, a preview before its release, and nothing else", () => {
  for (const version of ["0.9.0", "0.10.0", "0.10.0-rc.2", "0.10.0-rc.10", "0.2.1", "assets"]) add(version);
  mkdirSync(join(into, "0.3.0"));
  expect(versionsIn(into)).toEqual(["0.10.0", "0.10.0-rc.10", "0.10.0-rc.2", "0.9.0", "0.2.1"]);
});

test("the first page leads to the newest version, also after another one was added", () => {
  expect(() => writeVersions(into)).toThrow("no version's documentation");
  add("0.1.0");
  writeVersions(into);
  add("0.2.0");
  writeVersions(into);
  expect(readFileSync(join(into, "index.html"), "utf8")).toContain('url=0.2.0/index.html"');
  expect(JSON.parse(readFileSync(join(into, "versions.json"), "utf8"))).toEqual(["0.2.0", "0.1.0"]);
});
