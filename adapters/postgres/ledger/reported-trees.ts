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
import { readProviders } from "./read-ledger.ts";

/** A stored tree with what a report of it must know. */
export interface StoredReport extends StoredTree {
  readonly isDisabled: boolean;
}

/** What is stored of a tree's latest report. */
type ReportRow = Readonly<Record<string, { readonly classes: Record<string, number>; readonly traits: string[] }>>;

/** Reads the trees of these roots, as the client's transaction sees them. A root that does not exist has a tree without providers. */
export async function readStoredReports(
  client: ClientBase,
  roots: readonly ProviderUuid[],
): Promise<ReadonlyMap<ProviderUuid, StoredReport>> {
  const members = Map.groupBy(await readProviders(client, roots), ({ root }) => root);
  const reports = await readReports(client, roots);
  const overrides = await client.query<{ root: ProviderUuid; class: ResourceClass; ratio: number }>(
    "select root, class, ratio from ratio_overrides where root = any ($1)",
    [roots],
  );
  const displaced = await readDisplacedRatios(client, roots, overrides.rows.length > 0);
  const disabled = await client.query<{ root: ProviderUuid }>(
    "select root_provider as root from hosts where disabled and root_provider = any ($1)",
    [roots],
  );
  const closed = new Set(disabled.rows.map(({ root }) => root));
  const ratios = Map.groupBy(overrides.rows, ({ root }) => root);
  return new Map(
    roots.map((root) => [
      root,
      {
        providers: members.get(root) ?? ([] as readonly Provider[]),
        reported: reports.get(root)?.reported ?? new Map(),
        kept: reports.get(root)?.kept ?? [],
        ratios: new Map((ratios.get(root) ?? []).map((override) => [override.class, override.ratio])),
        displacedRatio: (provider, name) => displaced.get(`${provider}/${name}`),
        isDisabled: closed.has(root),
      },
    ]),
  );
}

/** Stores the records of these reports, and what operators should know of them. */
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
      reports.map(({ reported }) => JSON.stringify(rowOf(reported))),
      reports.map(({ kept }) => JSON.stringify(kept)),
    ],
  );
}

async function readReports(
  client: ClientBase,
  roots: readonly ProviderUuid[],
): Promise<ReadonlyMap<ProviderUuid, Pick<StoredReport, "reported" | "kept">>> {
  const { rows } = await client.query<{ root: ProviderUuid; providers: ReportRow; kept: readonly KeptOffer[] }>(
    "select root, providers, kept from reported_trees where root = any ($1)",
    [roots],
  );
  return new Map(rows.map(({ root, providers, kept }) => [root, { reported: reportedOf(providers), kept }]));
}

/** The ratios that agents reported where an override takes their place. */
async function readDisplacedRatios(
  client: ClientBase,
  roots: readonly ProviderUuid[],
  areOverridden: boolean,
): Promise<ReadonlyMap<string, number>> {
  if (!areOverridden) return new Map();
  const { rows } = await client.query<{ provider: string; class: string; ratio: number }>(
    `select s.provider, s.class, s.ratio
     from resource_providers r join resource_providers p on p.root_id = r.id
     join reported_ratios s on s.provider = p.uuid
     join ratio_overrides o on o.root = r.uuid and o.class = s.class
     where r.uuid = any ($1)`,
    [roots],
  );
  return new Map(rows.map((row) => [`${row.provider}/${row.class}`, row.ratio]));
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

function rowOf(reported: ReportedTree): ReportRow {
  return Object.fromEntries(
    Array.from(reported, ([uuid, { classes, traits }]) => [
      uuid,
      { classes: Object.fromEntries(classes), traits: [...traits].sort() },
    ]),
  );
}
