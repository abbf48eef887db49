import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { providerUuid } from "../../../core/ledger/ids.ts";
import { derivedProviderUuid } from "../../../runtime/derived-provider-uuid.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { inventory, spec, tree } from "../../../test/rigs/ledger-builders.ts";
import { createPool } from "../client/pool.ts";
import { inTransaction } from "../client/transaction.ts";
import { PostgresLedger } from "./postgres-ledger.ts";
import { readStoredReports } from "./reported-trees.ts";

/** Tables that have a row for each host, device, class or trait. */
const LARGE_TABLES = [
  ...["resource_providers", "inventories", "provider_traits", "reported_trees", "resource_classes", "traits"],
  ...["hosts", "ratio_overrides", "reported_ratios"],
];

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "reported trees test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const uuidOf = (name: string) => providerUuid(derivedProviderUuid(name));

/** A host with 9 devices. */
const host = (name: string) =>
  tree(
    spec(uuidOf(name), name, { inventories: { VCPU: inventory(8) }, traits: ["HW_CPU_X86_AVX"] }),
    ...Array.from({ length: 9 }, (_, device) =>
      spec(uuidOf(`${name}_${device}`), `${name}_${device}`, {
        ...{ parent: uuidOf(name), inventories: { VGPU: inventory(4) }, traits: ["COMPUTE_MANAGED_PCI_DEVICE"] },
      }),
    ),
  );

/** Gives a stored host what its tree alone does not give it. */
async function addRowsOf(root: string): Promise<void> {
  await pool.query("insert into hosts (name, root_provider, agent_id, up) values ($1::text, $1::uuid, 'a', true)", [
    root,
  ]);
  await pool.query("insert into ratio_overrides (root, class, ratio) values ($1, 'VCPU', 2)", [root]);
  await pool.query("insert into reported_ratios (provider, class, ratio) values ($1, 'VCPU', 1)", [root]);
}

test("finds all rows of stored trees by indexes, also where the tables have no statistics", async () => {
  const hosts = Array.from({ length: 20 }, (_, index) => host(`h${index}`));
  await new PostgresLedger(pool).reportTrees(hosts);
  for (const { root } of hosts) await addRowsOf(root);
  const scans = await inTransaction(pool, async (client) => {
    const stored = await readStoredReports(client, [...hosts.map(({ root }) => root), uuidOf("missing")]);
    expect([...stored.values()].map(({ providers }) => providers.length)).toEqual([...hosts.map(() => 10), 0]);
    const { rows } = await client.query(
      "select relname as name, seq_tup_read::int as rows from pg_stat_xact_user_tables where seq_tup_read > 0 and relname = any ($1)",
      [LARGE_TABLES],
    );
    return rows;
  });
  expect(scans).toEqual([]);
});

test("checks the classes and traits of reported trees with plans that are kept, instead of planning each check anew", async () => {
  const single = createPool({ url: database.url, applicationName: "reported trees test", connectionsMax: 1 });
  try {
    await new PostgresLedger(single).reportTrees([host("planned once")]);
    const { rows } = await single.query(
      `select distinct substring(ident from 'ONLY "public"."(\\w+)"') as checked from pg_backend_memory_contexts
       where name = 'CachedPlan' and ident like 'SELECT 1 FROM ONLY %' order by 1`,
    );
    expect(rows.map(({ checked }) => checked)).toEqual(expect.arrayContaining(["resource_classes", "traits"]));
  } finally {
    await single.end();
  }
});
