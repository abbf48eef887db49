import type { ClientBase } from "pg";
import {
  type ProviderUuid,
  providerUuid,
  type ResourceClass,
  resourceClass,
  type Trait,
  trait,
} from "../../../core/ledger/ids.ts";
import type { KeptOffer, ReportedProvider, ReportedTree, StoredTree } from "../../../core/ledger/merge-report.ts";
import type { Provider } from "../../../core/ledger/model.ts";

/** A stored tree with the data that the merge of a report needs. */
export interface StoredReport extends StoredTree {
  readonly isDisabled: boolean;
  /** The version of the record of the tree's latest report. Null when there is none. */
  readonly version: string | null;
}

/** The stored part of a tree's latest report. */
type ReportRow = Readonly<Record<string, { readonly classes: Record<string, number>; readonly traits: string[] }>>;

/** A provider with its inventories as total, reserved, min_unit, max_unit, step_size, allocation_ratio and used. */
interface ProviderJson {
  readonly uuid: ProviderUuid;
  readonly name: string;
  readonly parent: ProviderUuid | null;
  readonly generation: number;
  readonly inventories: Readonly<
    Record<string, readonly [number, number, number, number, number, number, number]>
  > | null;
  readonly traits: readonly Trait[] | null;
}

interface StoredRow {
  readonly root: ProviderUuid;
  readonly providers: readonly ProviderJson[] | null;
  readonly reported: ReportRow | null;
  readonly kept: readonly KeptOffer[] | null;
  readonly version: string | null;
  readonly is_disabled: boolean;
  readonly ratios: Readonly<Record<string, number>> | null;
  readonly displaced: Readonly<Record<string, number>> | null;
}

/**
 * Reads the trees of these roots, as of one moment, without their aggregates, which reports leave alone. A root that does not exist has a tree
 * without providers.
 */
export async function readStoredReports(
  client: Pick<ClientBase, "query">,
  roots: readonly ProviderUuid[],
): Promise<ReadonlyMap<ProviderUuid, StoredReport>> {
  const { rows } = await client.query<StoredRow>("select * from ledger_read_trees($1)", [roots]);
  return new Map(rows.map((row) => [row.root, storedReportOf(row)]));
}

function storedReportOf(row: StoredRow): StoredReport {
  const displaced = row.displaced ?? {};
  return {
    providers: (row.providers ?? []).map((provider) => providerOfJson(provider, row.root)),
    reported: reportedOf(row.reported ?? {}),
    kept: row.kept ?? [],
    ratios: new Map(Object.entries(row.ratios ?? {}).map(([name, ratio]) => [resourceClass(name), ratio])),
    displacedRatio: (provider, name) => displaced[`${provider}/${name}`],
    isDisabled: row.is_disabled,
    version: row.version,
  };
}

function providerOfJson(json: ProviderJson, root: ProviderUuid): Provider {
  const { uuid, name, parent, generation } = json;
  const inventories = Object.entries(json.inventories ?? {}).map(([key, values]) => {
    const [total, reserved, minUnit, maxUnit, stepSize, allocationRatio, used] = values;
    return [resourceClass(key), { total, reserved, minUnit, maxUnit, stepSize, allocationRatio, used }] as const;
  });
  return {
    ...{ uuid, name, parent, root, generation },
    inventories: new Map(inventories),
    traits: new Set(json.traits ?? []),
    aggregates: new Set(),
  };
}

/** Stores the records of these reports, and their notes for operators. */
export async function writeReports(
  client: ClientBase,
  reports: readonly {
    readonly root: ProviderUuid;
    readonly reported: ReportedTree;
    readonly kept: readonly KeptOffer[];
  }[],
): Promise<void> {
  await client.query(
    `insert into reported_trees as r (root, providers, kept)
     select w.root, w.providers::jsonb, w.kept::jsonb
     from unnest($1::uuid[], $2::text[], $3::text[]) as w (root, providers, kept)
     on conflict (root) do update
     set providers = excluded.providers, kept = excluded.kept, refusal = '', updated_at = now()
     where (r.providers, r.kept, r.refusal) is distinct from (excluded.providers, excluded.kept, '')`,
    [
      reports.map(({ root }) => root),
      reports.map(({ reported }) => JSON.stringify(reportRowOf(reported))),
      reports.map(({ kept }) => JSON.stringify(kept)),
    ],
  );
}

function reportedOf(row: ReportRow): ReportedTree {
  return new Map(
    Object.entries(row).map(([uuid, { classes, traits }]): [ProviderUuid, ReportedProvider] => [
      providerUuid(uuid),
      {
        classes: new Map(
          Object.entries(classes).map(([name, ratio]): [ResourceClass, number] => [resourceClass(name), ratio]),
        ),
        traits: new Set(traits.map((name): Trait => trait(name))),
      },
    ]),
  );
}

/** The record of a report, as it is stored. */
export function reportRowOf(reported: ReportedTree): ReportRow {
  return Object.fromEntries(
    Array.from(reported, ([uuid, { classes, traits }]) => [
      uuid,
      { classes: Object.fromEntries(classes), traits: [...traits].sort() },
    ]),
  );
}
