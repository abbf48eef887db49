import type { Pool } from "pg";
import { type AggregateUuid, aggregateUuid, type ProviderUuid, type Trait, trait } from "../../../core/ledger/ids.ts";
import type { Dated, SetOutcome } from "../../../core/placement/placement-store.ts";
import { inTransaction } from "../transaction.ts";
import { bumpGeneration, findProvider, lockProvider, type Queryable } from "./provider-rows.ts";

async function traitNames(db: Queryable, providerId: number): Promise<readonly Trait[]> {
  const { rows } = await db.query<{ name: string }>(
    "select t.name from provider_traits pt join traits t on t.id = pt.trait_id where pt.provider_id = $1 order by t.name",
    [providerId],
  );
  return rows.map((row) => trait(row.name));
}

export async function readTraits(pool: Pool, uuid: ProviderUuid): Promise<Dated<readonly Trait[]> | null> {
  const provider = await findProvider(pool, uuid);
  if (provider === null) return null;
  return {
    value: await traitNames(pool, provider.id),
    generation: provider.generation,
    updatedAtMs: provider.updatedAtMs,
  };
}

/** Replaces the provider's traits. The same set again writes nothing and leaves the generation, as upstream does. */
export function writeTraits(
  pool: Pool,
  uuid: ProviderUuid,
  expected: number | undefined,
  traits: readonly Trait[],
): Promise<SetOutcome<Trait>> {
  return inTransaction(pool, async (client): Promise<SetOutcome<Trait>> => {
    const provider = await lockProvider(client, uuid);
    if (provider === null) return { kind: "not-found" };
    if (expected !== undefined && expected !== provider.generation)
      return { kind: "generation-conflict", actual: provider.generation };
    // Shared lock: a trait that is being deleted must not gain a provider.
    const { rows: known } = await client.query<{ id: number; name: string }>(
      "select id, name from traits where name = any ($1::text[]) order by id for key share",
      [traits],
    );
    const knownNames = new Set(known.map((row) => row.name));
    const unknown = traits.filter((name) => !knownNames.has(name));
    if (unknown.length > 0) return { kind: "unknown-names", names: unknown };

    const before = await traitNames(client, provider.id);
    const same = before.length === knownNames.size && before.every((name) => knownNames.has(name));
    if (same) return { kind: "written", generation: provider.generation, updatedAtMs: provider.updatedAtMs };
    const ids = known.map((row) => row.id);
    await client.query("delete from provider_traits where provider_id = $1 and trait_id <> all ($2::int[])", [
      provider.id,
      ids,
    ]);
    await client.query(
      "insert into provider_traits (provider_id, trait_id) select $1, unnest($2::int[]) on conflict do nothing",
      [provider.id, ids],
    );
    const generation = await bumpGeneration(client, provider.id);
    return { kind: "written", generation, updatedAtMs: (await findProvider(client, uuid))!.updatedAtMs };
  });
}

export async function readAggregates(pool: Pool, uuid: ProviderUuid): Promise<Dated<readonly AggregateUuid[]> | null> {
  const provider = await findProvider(pool, uuid);
  if (provider === null) return null;
  const { rows } = await pool.query<{ aggregate: string }>(
    "select aggregate from provider_aggregates where provider_id = $1 order by aggregate",
    [provider.id],
  );
  return {
    value: rows.map((row) => aggregateUuid(row.aggregate)),
    generation: provider.generation,
    updatedAtMs: provider.updatedAtMs,
  };
}

/** Replaces the provider's aggregates; with `expected` the generation is checked and raised, also for the same set again. */
export function writeAggregates(
  pool: Pool,
  uuid: ProviderUuid,
  expected: number | undefined,
  aggregates: readonly AggregateUuid[],
): Promise<SetOutcome<never>> {
  return inTransaction(pool, async (client): Promise<SetOutcome<never>> => {
    const provider = await lockProvider(client, uuid);
    if (provider === null) return { kind: "not-found" };
    if (expected !== undefined && expected !== provider.generation)
      return { kind: "generation-conflict", actual: provider.generation };
    await client.query("delete from provider_aggregates where provider_id = $1 and aggregate <> all ($2::uuid[])", [
      provider.id,
      aggregates,
    ]);
    await client.query(
      "insert into provider_aggregates (provider_id, aggregate) select $1, unnest($2::uuid[]) on conflict do nothing",
      [provider.id, aggregates],
    );
    if (expected === undefined)
      return { kind: "written", generation: provider.generation, updatedAtMs: provider.updatedAtMs };
    const generation = await bumpGeneration(client, provider.id);
    return { kind: "written", generation, updatedAtMs: (await findProvider(client, uuid))!.updatedAtMs };
  });
}
