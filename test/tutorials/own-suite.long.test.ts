import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readTutorial } from "./read-tutorial.ts";
import { TutorialShell } from "./tutorial-shell.ts";

const CLONE = join(import.meta.dirname, "../..");
let project: string;

/** A project beside the clone. `npm install ../berth vitest` would make the first link, too, and download the same vitest. */
beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), "berth-own-suite-"));
  mkdirSync(join(project, "node_modules"));
  symlinkSync(CLONE, join(project, "node_modules/berth"));
  symlinkSync(join(CLONE, "node_modules/vitest"), join(project, "node_modules/vitest"));
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module", private: true }));
});
afterAll(() => rmSync(project, { recursive: true }));

test("the suite that the page shows passes in a project beside the clone, and writes its report", async () => {
  const { PATH = "" } = process.env;
  const env = { PATH: `${join(CLONE, "node_modules/.bin")}:${PATH}`, NO_COLOR: "1" };
  const shell = new TutorialShell({ directory: project, env });
  try {
    const tutorial = readTutorial("docs/chaos.md", "Your own suites");
    expect(tutorial.files.map(({ name }) => name)).toEqual(["my-filter.ts", "my-filter.test.ts"]);
    await shell.follow(tutorial);
  } finally {
    await shell.close();
  }
});
