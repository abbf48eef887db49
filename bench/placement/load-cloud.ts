import { type ClientBase, Pool } from "pg";
import { withClient } from "../../adapters/postgres/client/databases.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { aggregateUuid, providerUuid, resourceClass, trait } from "../../core/ledger/ids.ts";
import type { ProviderTree } from "../../core/ledger/provider-tree.ts";
import { INVENTORY_DEFAULTS } from "../../services/api/placement/schemas/inventories.ts";
import { AGGREGATE, type Node } from "./clouds.ts";

type Cloud = readonly (readonly Node[])[];

/** Number of trees in one call of the ledger. */
const TREES_AT_ONCE = 500;

/** Writes trees into Berth's ledger without HTTP, as agents' reports do, for measurements of other things than their creation. */
export async function loadBerth(databaseUrl: string, cloud: Cloud): Promise<void> {
  const pool = new Pool({ connectionString: databaseUrl, max: 1 });
  try {
    const ledger = new PostgresLedger(pool);
    for (let from = 0; from < cloud.length; from += TREES_AT_ONCE)
      await ledger.putTrees(cloud.slice(from, from + TREES_AT_ONCE).map(treeOf));
  } finally {
    await pool.end();
  }
}

function treeOf(nodes: readonly Node[]): ProviderTree {
  const { min_unit: minUnit, max_unit: maxUnit, step_size: stepSize } = INVENTORY_DEFAULTS;
  const units = { reserved: 0, minUnit, maxUnit, stepSize, allocationRatio: 1 };
  return {
    root: providerUuid(nodes[0]!.uuid),
    providers: nodes.map((node) => ({
      uuid: providerUuid(node.uuid),
      name: node.uuid,
      parent: node.parent === null ? null : providerUuid(node.parent),
      expected: "any",
      inventories: new Map(
        Object.entries(node.inventories).map(([name, total]) => [resourceClass(name), { ...units, total }]),
      ),
      traits: new Set(node.traits.map(trait)),
      aggregates: new Set([aggregateUuid(AGGREGATE)]),
    })),
  };
}

/** Writes trees into upstream's tables. The server must have run before, because it fills in the names at its start. */
export async function loadPeer(databaseUrl: string, cloud: Cloud): Promise<void> {
  const nodes = cloud.flatMap((tree) => tree.map((node) => ({ ...node, root: tree[0]!.uuid })));
  await withClient(databaseUrl, async (client) => {
    await client.query("begin");
    await insertProviders(client, nodes);
    await insertBelongings(client, nodes);
    await client.query("commit");
    await client.query("analyze");
  });
}

async function insertProviders(
  client: ClientBase,
  nodes: readonly (Node & { readonly root: string })[],
): Promise<void> {
  await client.query(
    "insert into resource_providers (uuid, name, generation, created_at) select uuid, uuid, 0, now() from unnest($1::text[]) uuid",
    [nodes.map((node) => node.uuid)],
  );
  await client.query(
    `update resource_providers p set root_provider_id = root.id, parent_provider_id = parent.id
     from unnest($1::text[], $2::text[], $3::text[]) as w (uuid, parent, root)
     join resource_providers root on root.uuid = w.root left join resource_providers parent on parent.uuid = w.parent
     where p.uuid = w.uuid`,
    [nodes.map((node) => node.uuid), nodes.map((node) => node.parent), nodes.map((node) => node.root)],
  );
}

async function insertBelongings(client: ClientBase, nodes: readonly Node[]): Promise<void> {
  const inventories = nodes.flatMap(({ uuid, inventories: list }) =>
    Object.entries(list).map(([name, total]) => ({ uuid, name, total })),
  );
  await client.query(
    `insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
                              allocation_ratio, created_at)
     select p.id, c.id, w.total, 0, 1, $4, 1, 1, now() from unnest($1::text[], $2::text[], $3::int[]) as w (uuid, name, total)
     join resource_providers p on p.uuid = w.uuid join resource_classes c on c.name = w.name`,
    [
      inventories.map((one) => one.uuid),
      inventories.map((one) => one.name),
      inventories.map((one) => one.total),
      INVENTORY_DEFAULTS.max_unit,
    ],
  );
  const traits = nodes.flatMap(({ uuid, traits: list }) => list.map((name) => ({ uuid, name })));
  await client.query(
    `insert into resource_provider_traits (resource_provider_id, trait_id, created_at)
     select p.id, t.id, now() from unnest($1::text[], $2::text[]) as w (uuid, name)
     join resource_providers p on p.uuid = w.uuid join traits t on t.name = w.name`,
    [traits.map((one) => one.uuid), traits.map((one) => one.name)],
  );
  await client.query(
    "insert into placement_aggregates (uuid, created_at) select $1::varchar, now() where not exists (select from placement_aggregates where uuid = $1::varchar)",
    [AGGREGATE],
  );
  await client.query(
    `insert into resource_provider_aggregates (resource_provider_id, aggregate_id, created_at)
     select p.id, a.id, now() from unnest($1::text[]) as w (uuid)
     join resource_providers p on p.uuid = w.uuid, placement_aggregates a where a.uuid = $2`,
    [nodes.map((node) => node.uuid), AGGREGATE],
  );
}
