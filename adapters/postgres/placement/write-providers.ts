import type { Pool, PoolClient } from "pg";
import { type ProviderUuid, providerUuid } from "../../../core/ledger/ids.ts";
import type {
  CreateProviderOutcome,
  NewProvider,
  PlacementStore,
  UpdateProviderOutcome,
} from "../../../core/stores/cell/placement-store.ts";
import { inTransaction, retryConflicts } from "../client/transaction.ts";
import { ask } from "./prepared.ts";
import { findProvider, type ProviderWithIds } from "./provider-rows.ts";
import type { WriteTogether } from "./write-together.ts";

const UNIQUE_VIOLATION = "23505";
const FOREIGN_KEY_VIOLATION = "23503";

const isViolation = (error: unknown, code: string): error is { code: string; constraint?: string } =>
  (error as { code?: string }).code === code;

/** A child joins its parent's tree. A transaction that moves or removes the parent meanwhile waits for the parent's lock. */
export async function insertProvider(pool: Pool, provider: NewProvider): Promise<CreateProviderOutcome> {
  const { uuid, name, parent } = provider;
  if (parent === uuid) return { kind: "own-parent" };
  try {
    const rows = await retryConflicts(() => ask<CreatedRow>(pool, INSERT_PROVIDER, [uuid, name, parent]));
    const created = rows[0];
    if (created === undefined) return { kind: "unknown-parent" };
    return createdFrom(provider, created);
  } catch (error) {
    if (isViolation(error, UNIQUE_VIOLATION))
      return { kind: error.constraint?.includes("name") ? "name-taken" : "uuid-taken" };
    throw error;
  }
}

/** `insertProvider` with group commit. */
export function providerCreator(pool: Pool, together: WriteTogether): PlacementStore["createProvider"] {
  return async (provider) => {
    const done = await together({ kind: "create", provider });
    if (done === null) return insertProvider(pool, provider);
    return createdFrom(provider, { root: done.root!, updated_at_ms: done.written_at_ms });
  };
}

function createdFrom({ uuid, name, parent }: NewProvider, row: CreatedRow): CreateProviderOutcome {
  const root = providerUuid(row.root);
  return { kind: "created", provider: { uuid, name, parent, root, generation: 0, updatedAtMs: row.updated_at_ms } };
}

interface CreatedRow {
  readonly root: string;
  readonly updated_at_ms: number;
}

/** Inserts nothing and returns no row when the parent does not exist. */
const INSERT_PROVIDER = `
  with parent as (
    select p.id, p.root_id from resource_providers p where p.uuid = $3::uuid for no key update
  ), new as materialized (
    select nextval(pg_get_serial_sequence('resource_providers', 'id'))::int as id
  ), inserted as (
    insert into resource_providers (id, uuid, name, parent_id, root_id) overriding system value
    select new.id, $1::uuid, $2::text, parent.id, coalesce(parent.root_id, new.id)
    from new left join parent on true where $3::uuid is null or parent.id is not null
    returning updated_at
  )
  select coalesce((select r.uuid from resource_providers r where r.id = parent.root_id), $1::uuid) as root,
    (extract(epoch from inserted.updated_at) * 1000)::float8 as updated_at_ms
  from inserted left join parent on true`;

/** Renames a provider, or moves it with its descendants to another parent (API 1.37) or to none. */
export async function alterProvider(
  pool: Pool,
  uuid: ProviderUuid,
  change: { readonly name: string; readonly parent?: ProviderUuid | null; readonly reparent: boolean },
): Promise<UpdateProviderOutcome> {
  try {
    return await inTransaction(pool, async (client) => {
      const provider = await lockTreeOf(client, uuid);
      if (provider === null) return { kind: "not-found" };
      if (change.parent !== undefined) {
        const refused = await moveProvider(client, provider, change.parent, change.reparent);
        if (refused) return { kind: refused };
      }
      // The time of the last change stays when nothing changes, as upstream does it.
      await client.query("update resource_providers set name = $2, updated_at = now() where id = $1 and name <> $2", [
        provider.id,
        change.name,
      ]);
      return { kind: "updated", provider: (await findProvider(client, uuid))! };
    });
  } catch (error) {
    if (isViolation(error, UNIQUE_VIOLATION)) return { kind: "name-taken" };
    throw error;
  }
}

/** Locks every provider of the tree in the order of their ids, because two concurrent moves could otherwise form a loop. */
async function lockTreeOf(client: PoolClient, uuid: ProviderUuid): Promise<ProviderWithIds | null> {
  const found = await findProvider(client, uuid);
  if (found === null) return null;
  await client.query("select from resource_providers where root_id = $1 order by id for no key update", [found.rootId]);
  return findProvider(client, uuid);
}

type MoveRefusal = "unknown-parent" | "reparent-refused" | "unparent-refused" | "loop";

async function moveProvider(
  client: PoolClient,
  provider: ProviderWithIds,
  parentUuid: ProviderUuid | null,
  reparent: boolean,
): Promise<MoveRefusal | null> {
  if (parentUuid === null) {
    if (provider.parent === null) return null;
    if (!reparent) return "unparent-refused";
    await setParent(client, provider, null, provider.id);
    return null;
  }
  const parent = await lockTreeOf(client, parentUuid);
  if (parent === null) return "unknown-parent";
  if (provider.parent !== null && provider.parent !== parentUuid && !reparent) return "reparent-refused";
  const { rows } = await client.query<{ inside: boolean }>(`select $2 = any (array(${SUBTREE_IDS})) as inside`, [
    provider.id,
    parent.id,
  ]);
  if (rows[0]!.inside) return "loop";
  await setParent(client, provider, parent.id, parent.rootId);
  return null;
}

const SUBTREE_IDS = `with recursive below as (
    select $1::int as id
    union all
    select child.id from resource_providers child join below on child.parent_id = below.id
  ) select id from below`;

async function setParent(
  client: PoolClient,
  provider: ProviderWithIds,
  parentId: number | null,
  rootId: number,
): Promise<void> {
  await client.query(
    `update resource_providers set root_id = $2, updated_at = now() where id in (${SUBTREE_IDS}) and root_id <> $2`,
    [provider.id, rootId],
  );
  await client.query(
    "update resource_providers set parent_id = $2, updated_at = now() where id = $1 and parent_id is distinct from $2",
    [provider.id, parentId],
  );
}

/** Removes a provider that has neither children nor allocations, with its inventories, traits and aggregates. */
export async function removeProvider(pool: Pool, uuid: ProviderUuid): ReturnType<PlacementStore["deleteProvider"]> {
  try {
    return await inTransaction(pool, async (client) => {
      const { rows } = await client.query<{ id: number }>(
        "select id from resource_providers where uuid = $1 for update",
        [uuid],
      );
      const id = rows[0]?.id;
      if (id === undefined) return "not-found";
      const { rows: uses } = await client.query<{ children: boolean; allocated: boolean }>(
        `select exists (select from resource_providers where parent_id = $1) as children,
                exists (select from allocations where provider_id = $1) as allocated`,
        [id],
      );
      if (uses[0]!.children) return "has-children";
      if (uses[0]!.allocated) return "has-allocations";
      await client.query("delete from inventories where provider_id = $1", [id]);
      await client.query("delete from provider_traits where provider_id = $1", [id]);
      await client.query("delete from provider_aggregates where provider_id = $1", [id]);
      await client.query("delete from resource_providers where id = $1", [id]);
      return "deleted";
    });
  } catch (error) {
    // A child or an allocation was added after the check and before the delete.
    if (isViolation(error, FOREIGN_KEY_VIOLATION))
      return error.constraint?.includes("parent") ? "has-children" : "has-allocations";
    throw error;
  }
}
