import type { Pool } from "pg";
import { type AggregateUuid, aggregateUuid, type ProviderUuid, type Trait, trait } from "../../../core/ledger/ids.ts";
import type { Dated, PlacementStore, SetOutcome } from "../../../core/placement/placement-store.ts";
import { retryConflicts } from "../transaction.ts";
import { ask, generationParameter } from "./prepared.ts";
import { findProvider } from "./provider-rows.ts";
import { callForEach, together, type WriteFunction } from "./write-together.ts";

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

/** Replaces the provider's traits, which must not repeat. The same set again writes nothing and leaves the generation. */
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

const SET_TRAITS: WriteFunction = {
  name: "placement_set_traits",
  columns: [
    ["expected", "int"],
    ["names", "text[]"],
  ],
};

/** `writeTraits` for many callers. */
export function traitWriter(pool: Pool): PlacementStore["setTraits"] {
  interface Write {
    readonly uuid: ProviderUuid;
    readonly expected: number | undefined;
    readonly traits: readonly Trait[];
  }
  const submit = together<Write, SetOutcome<Trait>>({
    one: ({ uuid, expected, traits }) => writeTraits(pool, uuid, expected, traits),
    many: async (writes) => {
      const calls = writes.map(({ uuid, expected, traits }) => ({
        uuid,
        expected: generationParameter(expected),
        names: traits,
      }));
      return (await callForEach<WrittenRow>(pool, SET_TRAITS, calls)).map(traitOutcomeOf);
    },
  });
  return (uuid, expected, traits) => submit({ uuid, expected, traits });
}

/** Replaces the provider's aggregates; with `expected` the generation is checked and raised, also for the same set again. */
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
  return aggregateOutcomeOf(row!);
}

const aggregateOutcomeOf = (row: WrittenRow): SetOutcome<never> =>
  outcomeOf(row.kind as Exclude<SetOutcome<never>["kind"], "unknown-names">, row);

const SET_AGGREGATES: WriteFunction = {
  name: "placement_set_aggregates",
  columns: [
    ["expected", "int"],
    ["aggregates", "uuid[]"],
  ],
};

/** `writeAggregates` for many callers. */
export function aggregateWriter(pool: Pool): PlacementStore["setAggregates"] {
  interface Write {
    readonly uuid: ProviderUuid;
    readonly expected: number | undefined;
    readonly aggregates: readonly AggregateUuid[];
  }
  const submit = together<Write, SetOutcome<never>>({
    one: ({ uuid, expected, aggregates }) => writeAggregates(pool, uuid, expected, aggregates),
    many: async (writes) => {
      const calls = writes.map((write) => ({ ...write, expected: generationParameter(write.expected) }));
      return (await callForEach<WrittenRow>(pool, SET_AGGREGATES, calls)).map(aggregateOutcomeOf);
    },
  });
  return (uuid, expected, aggregates) => submit({ uuid, expected, aggregates });
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
