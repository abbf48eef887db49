import { randomUUID } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { treeOfReport } from "../../services/conductor/tree-of.ts";
import { freshDatabase } from "../rigs/databases.ts";
import { follow } from "./followed-cell.ts";

const SEEN_MS = 30_000;

test("a report whose providers have as many traits as they may makes a view store one set of traits for each provider", async () => {
  const database = await freshDatabase("cell");
  onTestFinished(() => database.drop());
  const pool = createPool({ url: database.url, applicationName: "test" });
  onTestFinished(() => pool.end());
  const { view, follower } = follow(database.url);
  onTestFinished(() => follower.close());
  await follower.waitUntilSeen(SEEN_MS);
  const [root, child] = [randomUUID(), randomUUID()];
  const traits = (from: number) => Array.from({ length: 1_000 }, (_, at) => `CUSTOM_T${from + at}`);
  const tree = treeOfReport({
    ...{ host: "h", rootProvider: root, revision: 1, hypervisor: undefined },
    providers: [
      { uuid: root, name: "h", parent: "", inventories: {}, traits: traits(0) },
      { uuid: child, name: "h_card", parent: root, inventories: {}, traits: traits(500) },
    ],
  });
  if ("refused" in tree) throw new Error(tree.refused);
  const before = view.traits.revision;
  const [outcome] = await new PostgresLedger(pool).reportTrees([tree]);
  expect(outcome).toMatchObject({ kind: "replaced" });
  await follower.waitUntilSeen(SEEN_MS);
  expect(view.provider(tree.root)?.traits.size).toBe(1_000);
  expect(view.traits.revision - before).toBe(2);
});
