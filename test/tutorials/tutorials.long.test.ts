import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { removeCluster } from "../../adapters/postgres/embedded/embedded-cluster.ts";
import { OWN_BERTH, ServiceProcess } from "../../chaos/local/service-process.ts";
import { readTutorial } from "./read-tutorial.ts";
import { TutorialShell } from "./tutorial-shell.ts";

const DEFAULT_API = "http://127.0.0.1:8774";
const FILTER = readTutorial("docs/filters-and-weighers.md", "Your own");
const START = "npx berth dev --filters ./only-cold-aisle.ts";

let directory: string;
let dev: ServiceProcess;
let api: string;

// All pages use one cloud, as a reader's `berth dev` would serve all of them. It is the one that the page about filters starts.
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "berth-tutorials-"));
  expect(FILTER.lines).toEqual([START]);
  for (const { name, text } of FILTER.files) writeFileSync(join(directory, name), text);
  const words = START.split(" ").slice(2);
  const argv = [...words.map((word) => word.replace(/^\.\//, `${directory}/`)), "--port", "0"];
  dev = new ServiceProcess({
    ...{ name: "dev", argv: [...argv, "--data-dir", join(directory, "data"), "--log-level", "error"] },
    ...{ env: () => ({}), berth: () => OWN_BERTH },
  });
  api = await dev.start();
});
afterAll(async () => {
  await dev?.kill();
  removeCluster(join(directory, "data/postgres"));
  removeCluster(directory);
});

test.each([
  ["docs/filters-and-weighers.md", "Your own"],
  ["docs/moves.md", "Emptying a host"],
])("the commands of %s, %s, do what the page shows", async (page, heading) => {
  const shell = new TutorialShell({
    directory: join(directory, "reader"),
    env: { BERTH_API: api },
    substitutes: { [DEFAULT_API]: api },
  });
  try {
    const tutorial = readTutorial(page, heading);
    expect(tutorial.steps.length).toBeGreaterThan(2);
    await shell.follow(tutorial);
  } finally {
    await shell.close();
  }
});
