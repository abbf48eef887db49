import { healOrphans, type Orphan } from "../../adapters/postgres/audit/heal-orphans.ts";

export type HealedOrphan = Orphan & { readonly cell: string };

/** Gives back, in each cell, what belongs to nothing there. */
export async function healCells(
  cells: readonly { readonly name: string; readonly databaseUrl: string }[],
  isDryRun: boolean,
): Promise<readonly HealedOrphan[]> {
  const healed: HealedOrphan[] = [];
  for (const { name, databaseUrl } of cells) {
    for (const orphan of await healOrphans(databaseUrl, isDryRun)) healed.push({ cell: name, ...orphan });
  }
  return healed;
}

/** One line for each, for people. */
export function healedText(healed: readonly HealedOrphan[], isDryRun: boolean): readonly string[] {
  const did = isDryRun ? "would give back" : "gave back";
  return healed.map(
    ({ cell, consumer, why, holds }) => `${did} in cell ${cell}: consumer ${consumer}, ${why}; ${holds.join(", ")}`,
  );
}
