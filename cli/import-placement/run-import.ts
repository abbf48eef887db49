import type { Client } from "pg";
import { beginImport } from "./begin-import.ts";
import { type Checkpoint, type Facts, writeCheckpoint } from "./checkpoint.ts";
import { copyConsumers, reportOrphans } from "./copy-consumers.ts";
import { copyNames } from "./copy-names.ts";
import { copyAggregates, copyInventories, copyTraits } from "./copy-provider-parts.ts";
import { copyChildren, copyRoots, linkParents } from "./copy-providers.ts";
import type { CopyContext, CopyStep } from "./copy-step.ts";
import { compareFacts, type Difference, factsOfLedger, factsOfSource, rowsIn } from "./facts.ts";
import { type RejectedRow, RejectedRows } from "./rejected-rows.ts";
import type { Source } from "./source.ts";

/** The order guarantees that each step finds the rows that it refers to. */
const STEPS: readonly CopyStep[] = [
  copyRoots,
  copyChildren,
  linkParents,
  copyTraits,
  copyAggregates,
  copyInventories,
  copyConsumers,
];

/** Receives the progress of an import. */
export interface ImportWatcher {
  /** Called with the total number of rows and the number already copied. */
  began(rowsInAll: number, rowsThere: number): void;
  copied(what: string, rows: number): void;
}

export interface ImportOptions {
  readonly batchRows: number;
  /** Whether to empty the ledger first. */
  readonly restart: boolean;
}

export type ImportResult =
  | { readonly kind: "already-done"; readonly source: string; readonly doneAt: Date }
  | {
      readonly kind: "imported";
      readonly facts: Facts;
      /** Facts that differ between source and ledger; empty when the import is complete. */
      readonly differences: readonly Difference[];
      readonly rejected: readonly RejectedRow[];
      /** Inventories of which more is used than they have. Like upstream, the ledger keeps them and allocates no more. */
      readonly overfull: readonly string[];
    };

const OVERFULL_SHOWN_MAX = 20;

/**
 * Copies a Placement database into a cell's ledger, batch by batch, each with its checkpoint in one transaction. Then it sums the usage in
 * both and compares the sums. After an interruption at any point, the next run continues after the last batch. Throws `ImportError`.
 */
export async function runImport(
  source: Source,
  ledger: Client,
  options: ImportOptions,
  watcher: ImportWatcher,
): Promise<ImportResult> {
  const facts = await factsOfSource(source);
  const begun = await beginImport(ledger, { source: source.label, facts, restart: options.restart });
  if (begun.doneAt !== null) return { kind: "already-done", source: begun.source, doneAt: begun.doneAt };

  const names = await copyNames(source, ledger);
  const rejected = new RejectedRows(begun.rejected);
  watcher.began(rowsIn(facts), rowsIn(await factsOfLedger(ledger)));
  await copySteps({ source, ledger, names, rejected }, begun, options.batchRows, watcher);
  await reportOrphans({ source, rejected });
  await finishLedger(ledger);

  const differences = compareFacts(facts, await factsOfLedger(ledger));
  const found = rejected.list();
  const overfull = await findOverfull(ledger);
  await writeCheckpoint(ledger, { ...begun, step: STEPS.length, afterId: 0, rejected: found, doneAt: new Date() });
  return { kind: "imported", facts, differences, rejected: found, overfull };
}

async function copySteps(
  context: CopyContext,
  begun: Checkpoint,
  batchRows: number,
  watcher: ImportWatcher,
): Promise<void> {
  let afterId = begun.afterId;
  for (let index = begun.step; index < STEPS.length; index += 1) {
    const step = STEPS[index]!;
    for (;;) {
      const { lastId, rows } = await inTransaction(context, async () => {
        const batch = await step.copy(context, afterId, batchRows);
        const [at, after] = batch.lastId === null ? [index + 1, 0] : [index, batch.lastId];
        await writeCheckpoint(context.ledger, {
          ...begun,
          step: at,
          afterId: after,
          rejected: context.rejected.list(),
        });
        return batch;
      });
      watcher.copied(step.what, rows);
      if (lastId === null) break;
      afterId = lastId;
    }
    afterId = 0;
  }
}

async function inTransaction<Result>({ ledger }: CopyContext, work: () => Promise<Result>): Promise<Result> {
  await ledger.query("begin");
  try {
    const result = await work();
    await ledger.query("commit");
    return result;
  } catch (error) {
    await ledger.query("rollback").catch(() => {});
    throw error;
  }
}

/** Law 1 (`used` is the sum of the allocations), and ids that new providers can have. */
async function finishLedger(ledger: Client): Promise<void> {
  await ledger.query(
    `update inventories i set used = sums.used
     from (select provider_id, class_id, sum(amount) as used from allocations group by provider_id, class_id) sums
     where i.provider_id = sums.provider_id and i.class_id = sums.class_id and i.used <> sums.used`,
  );
  await ledger.query(
    `select setval(pg_get_serial_sequence('resource_providers', 'id'), max(id)) from resource_providers having count(*) > 0`,
  );
  await ledger.query(
    "analyze resource_providers, provider_traits, provider_aggregates, inventories, consumers, allocations",
  );
}

async function findOverfull(ledger: Client): Promise<readonly string[]> {
  const { rows } = await ledger.query<{ line: string; total: string }>(
    `select p.uuid || ' (' || p.name || '): ' || i.used || ' of ' ||
       ledger_capacity(i.total, i.reserved, i.allocation_ratio) || ' ' || c.name as line, count(*) over () as total
     from inventories i join resource_providers p on p.id = i.provider_id join resource_classes c on c.id = i.class_id
     where i.used > ledger_capacity(i.total, i.reserved, i.allocation_ratio) order by p.id, c.name limit ${OVERFULL_SHOWN_MAX}`,
  );
  const more = Number(rows[0]?.total ?? 0) - rows.length;
  return [...rows.map((row) => row.line), ...(more > 0 ? [`and ${more} more`] : [])];
}
