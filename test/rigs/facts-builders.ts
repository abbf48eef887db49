import { type HypervisorFacts, UNKNOWN_HYPERVISOR } from "../../core/ledger/hypervisor-facts.ts";
import { LedgerView } from "../../core/ledger/ledger-view.ts";
import type { RowChange } from "../../core/ledger/row-change.ts";
import { AggregateIndex } from "../../core/scheduling/aggregate-index.ts";
import type { AggregateRecord } from "../../core/scheduling/aggregate-record.ts";
import type { FilteredCell } from "../../core/scheduling/filters/host-filter.ts";
import { LiveCellFacts } from "../../core/scheduling/live-cell-facts.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { serverSpec } from "../contract/cell-fixtures.ts";
import { host, provider } from "./view-builders.ts";

/** The row of a server whose home is this host, or that has none (null). */
export function serverRow(
  spec: ServerSpec,
  at: string | null,
  state: { readonly status?: string; readonly taskState?: string | null; readonly specRevision?: number } = {},
): RowChange & { readonly kind: "server-put" } {
  return {
    kind: "server-put",
    uuid: spec.uuid,
    host: at,
    status: state.status ?? "ACTIVE",
    taskState: state.taskState ?? null,
    specRevision: state.specRevision ?? 0,
    spec: () => spec,
  };
}

/** An aggregate of these hosts. Ids are numbered in the order of creation. */
export function aggregate(
  id: number,
  metadata: Readonly<Record<string, string>>,
  hosts: readonly string[],
): AggregateRecord {
  return { id, uuid: `aggregate-${id}`, name: `aggregate ${id}`, metadata, hosts, createdAtMs: 0, updatedAtMs: null };
}

/** The differences of a test's host from a plain one, which has 8 VCPUs, 8 GiB and 100 GB and is up. */
export interface HostOptions {
  readonly inventories?: Readonly<Record<string, number>>;
  readonly traits?: readonly string[];
  readonly up?: boolean;
  readonly disabled?: boolean;
  readonly hypervisor?: Partial<HypervisorFacts>;
  /** The servers at home on the host, and those that are being built there. */
  readonly servers?: readonly ServerSpec[];
  readonly builds?: readonly ServerSpec[];
}

const PLAIN = { VCPU: 8, MEMORY_MB: 8_192, DISK_GB: 100 };

export interface FactsScene extends FilteredCell {
  readonly facts: LiveCellFacts;
  readonly view: LedgerView;
}

/** A cell with these hosts. The root of each has the host's name. */
export function sceneOf(
  hosts: Readonly<Record<string, HostOptions>>,
  aggregates: readonly AggregateRecord[] = [],
): FactsScene {
  const view = new LedgerView();
  const facts = new LiveCellFacts("cell-1", view);
  for (const [name, options] of Object.entries(hosts)) {
    const traits = options.traits ?? [];
    const rows: RowChange[] = [
      ...provider(name, options.inventories ?? PLAIN, { traits }),
      { ...host(name, name, options), hypervisor: { ...UNKNOWN_HYPERVISOR, ...options.hypervisor } } as RowChange,
      ...(options.servers ?? []).map((spec) => serverRow(spec, name)),
      ...(options.builds ?? []).map((spec) => serverRow(spec, name, { status: "BUILD", taskState: "spawning" })),
    ];
    view.applyAll(rows);
    facts.applyAll(rows);
  }
  facts.setAggregates(new AggregateIndex(aggregates, "nova"));
  return { name: "cell-1", view, facts };
}

/** A request for a flavor with these extra specs. */
export function specWith(
  number: number,
  { extraSpecs = {}, ...over }: Partial<ServerSpec> & { readonly extraSpecs?: Readonly<Record<string, string>> } = {},
): ServerSpec {
  const spec = serverSpec(number, over);
  return spec.flavor ? { ...spec, flavor: { ...spec.flavor, extraSpecs: { ...extraSpecs } } } : spec;
}
