import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadHostFilters } from "./load-host-filters.ts";

describe("host filters from modules", () => {
  let dir: string;
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), "berth-filters-"));
  });
  afterAll(() => rmSync(dir, { recursive: true }));

  const module = (name: string, text: string): string => {
    const path = join(dir, name);
    writeFileSync(path, text);
    return path;
  };
  const filter = (name: string): string => `{ name: "${name}", decidedBy: "kind", bind: () => null }`;

  test("a module exports one filter or several, and they come in order", async () => {
    const one = module("one.mjs", `export default ${filter("One")};`);
    const more = module("more.mjs", `export default [${filter("Two")}, ${filter("Three")}];`);
    expect((await loadHostFilters([one, more])).map(({ name }) => name)).toEqual(["One", "Two", "Three"]);
  });

  test.each([
    ["a module that is not there", "", "missing.mjs"],
    ["a module that throws", "throw new Error('not today');", "throws.mjs"],
    ["a default export that is no filter", "export default { name: 'Half', bind() {} };", "half.mjs"],
    ["no default export", "export const name = 'None';", "none.mjs"],
    ["a name that Nova has", `export default ${filter("ComputeFilter")};`, "taken.mjs"],
    ["a name twice", `export default [${filter("Same")}, ${filter("Same")}];`, "twice.mjs"],
  ])("refuses %s in one line that names the module", async (_, text, name) => {
    const path = text === "" ? join(dir, name) : module(name, text);
    await expect(loadHostFilters([path])).rejects.toThrow(name);
    await expect(loadHostFilters([path])).rejects.toMatchObject({ name: "SettingsError" });
  });
});
