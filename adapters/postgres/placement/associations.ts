import type { Pool } from "pg";
import { type AggregateUuid, aggregateUuid, type ProviderUuid, type Trait, trait } from "../../../core/ledger/ids.ts";
import type { Dated, PlacementStore, SetOutcome } from "../../../core/stores/cell/placement-store.ts";
import { retryConflicts } from "../client/transaction.ts";
import { ask, generationParameter } from "./prepared.ts";
import { findProvider } from "./provider-rows.ts";
import { type WriteTogether, writtenOf } from "./write-together.ts";

export async function readTraits(pool: Pool, uuid: ProviderUuid): Promise<Dated<readonly Trait[]> | null> {
  const provider = await findProvider(pool, uuid);
  if (provider === null) return null;
  const rows = await ask<{ name: string }>(
    pool,
    "select t.name from provider_traits pt join traits t on t.id = pt.trait_id where pt.provider_id = $1 order by t.name",
    [provider.id],
  );
  const value = rows.map((row) => trait(row.name));
  return { value, generation: provider.generation, updatedAtMs: provider.updatedAtMs };
}

export async function readAggregates(pool: Pool, uuid: ProviderUuid): Promise<Dated<readonly AggregateUuid[]> | null> {
  const provider = await findProvider(pool, uuid);
  if (provider === null) return null;
  const rows = await ask<{ aggregate: string }>(
    pool,
    "select aggregate from provider_aggregates where provider_id = $1 order by aggregate",
    [provider.id],
  );
  const value = rows.map((row) => aggregateUuid(row.aggregate));
  return { value, generation: provider.generation, updatedAtMs: provider.updatedAtMs };
}

interface WrittenRow {
  readonly kind: SetOutcome<string>["kind"];
  readonly new_generation: number;
  readonly written_at_ms: number;
  readonly names?: readonly string[] | null;
}

/** Replaces the provider's traits, which must not repeat. Writing the same set again changes nothing, not even the generation. */
export async function writeTraits(
  pool: Pool,
  uuid: ProviderUuid,
  expected: number | undefined,
  traits: readonly Trait[],
): Promise<SetOutcome<Trait>> {
  const values = [uuid, generationParameter(expected), traits];
  const [row] = await retryConflicts(() =>
    ask<WrittenRow>(pool, "select * from placement_set_traits($1, $2, $3)", values),
  );
  return traitOutcomeOf(row!);
}

function traitOutcomeOf(row: WrittenRow): SetOutcome<Trait> {
  return row.kind === "unknown-names"
    ? { kind: "unknown-names", names: (row.names ?? []).map(trait) }
    : outcomeOf(row.kind, row);
}

/** `writeTraits` with group commit. */
export function traitWriter(pool: Pool, together: WriteTogether): PlacementStore["setTraits"] {
  return async (uuid, expected, traits) => {
    const done = await together({ kind: "traits", uuid, expected, traits });
    return done === null ? writeTraits(pool, uuid, expected, traits) : writtenOf(done);
  };
}

/** Replaces the provider's aggregates. With `expected` the generation is checked and raised, even when the set is the same. */
export async function writeAggregates(
  pool: Pool,
  uuid: ProviderUuid,
  expected: number | undefined,
  aggregates: readonly AggregateUuid[],
): Promise<SetOutcome<never>> {
  const values = [uuid, generationParameter(expected), aggregates];
  const [row] = await retryConflicts(() =>
    ask<WrittenRow & { readonly kind: SetOutcome<never>["kind"] }>(
      pool,
      "select * from placement_set_aggregates($1, $2, $3)",
      values,
    ),
  );
  return outcomeOf(row!.kind as Exclude<SetOutcome<never>["kind"], "unknown-names">, row!);
}

/** `writeAggregates` with group commit. */
export function aggregateWriter(pool: Pool, together: WriteTogether): PlacementStore["setAggregates"] {
  return async (uuid, expected, aggregates) => {
    const done = await together({ kind: "aggregates", uuid, expected, aggregates });
    return done === null ? writeAggregates(pool, uuid, expected, aggregates) : writtenOf(done);
  };
}

function outcomeOf(
  kind: Exclude<SetOutcome<never>["kind"], "unknown-names">,
  { new_generation: generation, written_at_ms: updatedAtMs }: WrittenRow,
): SetOutcome<never> {
  switch (kind) {
    case "written":
      return { kind, generation, updatedAtMs };
    case "not-found":
      return { kind };
    case "generation-conflict":
      return { kind, actual: generation };
    default:
      return kind satisfies never;
  }
}
