import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { freePort } from "../../runtime/free-port.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";
import { createPlacementTables, fillPlacementTables, type PlacementTables } from "../rigs/placement-tables.ts";
import { readTutorial } from "./read-tutorial.ts";
import { TutorialShell } from "./tutorial-shell.ts";

let tables: PlacementTables;
let cell: TestDatabase;
let directory: string;

// The old Placement's database: upstream's tables, on the Postgres of the tests instead of the page's MySQL.
beforeAll(async () => {
  tables = await createPlacementTables(inject("postgresUrl"), `test_tutorial_${process.pid}`);
  await fillPlacementTables(tables.client);
  cell = await freshDatabase("cell");
  directory = mkdtempSync(join(tmpdir(), "berth-placement-tutorial-"));
});
afterAll(async () => {
  await tables?.drop();
  await cell?.drop();
  rmSync(directory, { recursive: true, force: true });
});

test("a Placement database is imported, served and compared as docs/placement.md shows", async () => {
  const tutorial = readTutorial("docs/placement.md", "Replacing the Placement of a running cloud");
  const shell = new TutorialShell({
    directory,
    substitutes: {
      "mysql+pymysql://placement:secret@db.example.org/placement": tables.url,
      "postgresql://berth:secret@pg.example.org/cell": cell.url,
      "127.0.0.1:8778": `127.0.0.1:${await freePort()}`,
    },
  });
  try {
    expect(tutorial.steps.length).toBeGreaterThan(5);
    await shell.follow(tutorial);
  } finally {
    await shell.close();
  }
});
