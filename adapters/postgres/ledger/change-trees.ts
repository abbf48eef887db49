import type { Pool } from "pg";
import type { ProviderUuid } from "../../../core/ledger/ids.ts";
import type { ReportedTree } from "../../../core/ledger/merge-report.ts";
import type { ProviderDifference } from "../../../core/ledger/tree-difference.ts";
import { reportRowOf, type StoredReport } from "./reported-trees.ts";

/** A report that changes only inventories and traits of a tree. */
export interface TreeChange {
  readonly root: ProviderUuid;
  /** The tree as it was read. The differences hold only if it has not changed since. */
  readonly before: StoredReport;
  readonly reported: ReportedTree;
  readonly differences: readonly ProviderDifference[];
}

/**
 * Writes the changes of these trees, and the records of their reports, in one transaction. Returns false, and writes nothing, if one of the trees is
 * not as it was read, or if more is in use than it would then offer. Cost: one round trip, and what changes.
 */
export async function changeTrees(pool: Pool, changes: readonly TreeChange[]): Promise<boolean> {
  const values = [...treeColumns(changes), ...providerColumns(changes.flatMap(({ differences }) => differences))];
  const parameters = values.map((_, index) => `$${index + 1}`).join(", ");
  const { rows } = await pool.query<{ changed: boolean }>({
    name: "ledger_change_trees",
    text: `select ledger_change_trees(${parameters}) as changed`,
    values,
  });
  return rows[0]!.changed;
}

function treeColumns(changes: readonly TreeChange[]): readonly (readonly unknown[])[] {
  return [
    changes.map(({ root }) => root),
    changes.map(({ before }) => before.isDisabled),
    changes.map(({ before }) => JSON.stringify(Object.fromEntries(before.ratios))),
    changes.map(({ before }) => before.version),
    changes.map(({ reported }) => JSON.stringify(reportRowOf(reported))),
  ];
}

/** The providers that change, and for each of the lists of their changes the number of the provider, from 1, before the values. */
function providerColumns(differences: readonly ProviderDifference[]): readonly (readonly unknown[])[] {
  const listed = <Value>(valuesOf: (difference: ProviderDifference) => readonly Value[]) =>
    differences.flatMap((difference, index) => valuesOf(difference).map((value) => [index + 1, value] as const));
  const columns = (rows: readonly (readonly [number, unknown])[]) => [
    rows.map(([at]) => at),
    rows.map(([, value]) => value),
  ];
  const set = listed((difference) => difference.set);
  return [
    differences.map(({ provider }) => provider),
    differences.map(({ generation }) => generation),
    set.map(([at]) => at),
    set.map(([, [name]]) => name),
    set.map(([, [, inventory]]) => inventory.total),
    set.map(([, [, inventory]]) => inventory.reserved),
    set.map(([, [, inventory]]) => inventory.minUnit),
    set.map(([, [, inventory]]) => inventory.maxUnit),
    set.map(([, [, inventory]]) => inventory.stepSize),
    set.map(([, [, inventory]]) => inventory.allocationRatio),
    ...columns(listed((difference) => difference.removed)),
    ...columns(listed((difference) => difference.gained)),
    ...columns(listed((difference) => difference.lost)),
  ];
}
