import type { Pool, PoolClient } from "pg";
import { assert } from "../../../core/assert.ts";
import { describeAllocationRefusal } from "../../../core/ledger/describe-allocation-refusal.ts";
import type { ProviderUuid } from "../../../core/ledger/ids.ts";
import { isSameKept, isSameReport, type MergedReport, mergeReport } from "../../../core/ledger/merge-report.ts";
import { underOperatorsWord } from "../../../core/ledger/operators-word.ts";
import { planReshape } from "../../../core/ledger/plan-reshape.ts";
import type { ProviderTree } from "../../../core/ledger/provider-tree.ts";
import { type ReportOutcome, reportOutcomeOf } from "../../../core/ledger/report-outcome.ts";
import { treeDifference } from "../../../core/ledger/tree-difference.ts";
import { inTransaction, retryConflicts } from "../client/transaction.ts";
import { changeTrees, type TreeChange } from "./change-trees.ts";
import { decodeOutcome, encodeChanges, type LedgerApplyRow } from "./encode-changes.ts";
import { decodeTreeOutcome, encodeTrees, type PutTreesRow } from "./encode-trees.ts";
import { readHolders, readProviders } from "./read-ledger.ts";
import { readStoredReports, type StoredReport, writeReports } from "./reported-trees.ts";

type Merged = MergedReport & { readonly kind: "merged" };

/**
 * Takes over reports of trees that are independent of each other. They are compared with the stored trees without a lock: trees that are already as
 * reported are found so, and where only inventories and traits differ, these alone are written, if nobody has changed the tree meanwhile. The other
 * trees are locked, read again and merged under their locks, so no change is lost between reading and writing. `conflicts`: SQLSTATEs after
 * which a transaction is repeated.
 */
export async function reportTogether(
  pool: Pool,
  reports: readonly ProviderTree[],
  conflicts: readonly string[],
): Promise<readonly ReportOutcome[]> {
  const outcomes = new Map<ProviderUuid, ReportOutcome>(await reportChanges(pool, reports, conflicts));
  const open = () => reports.filter(({ root }) => !outcomes.has(root));
  if (open().length > 0) {
    const written = await inTransaction(pool, (client) => writeTogether(client, open()), conflicts);
    for (const [root, outcome] of written) outcomes.set(root, outcome);
  }
  for (const report of open()) outcomes.set(report.root, await reshape(pool, report, conflicts));
  return reports.map(({ root }) => outcomes.get(root)!);
}

/** The outcomes of the reports that equal the stored trees, and of those that change no more than inventories and traits. */
async function reportChanges(
  pool: Pool,
  reports: readonly ProviderTree[],
  conflicts: readonly string[],
): Promise<readonly (readonly [ProviderUuid, ReportOutcome])[]> {
  const stored = await readStoredReports(
    pool,
    reports.map(({ root }) => root),
  );
  const outcomes: (readonly [ProviderUuid, ReportOutcome])[] = [];
  const changes: TreeChange[] = [];
  for (const report of reports) {
    const before = stored.get(report.root)!;
    const merged = before.providers.length === 0 ? null : mergeReport(report, before);
    if (merged?.kind !== "merged" || merged.shapeChanges.length > 0) continue;
    const wanted = underOperatorsWord(merged.tree, { disabled: before.isDisabled, ratios: before.ratios });
    const differences = treeDifference(wanted, before.providers);
    if (differences === null) continue;
    if (differences.length === 0) {
      const isAsStored = isSameReport(merged.reported, before.reported) && isSameKept(merged.kept, before.kept);
      if (isAsStored) outcomes.push([report.root, { kind: "unchanged", kept: merged.kept }]);
    } else if (merged.kept.length + before.kept.length === 0 && hasSameRatios(merged.tree, before))
      changes.push({ root: report.root, before, reported: merged.reported, differences });
  }
  if (changes.length > 0 && (await retryConflicts(() => changeTrees(pool, changes), conflicts)))
    for (const { root } of changes) outcomes.push([root, { kind: "replaced", kept: [] }]);
  return outcomes;
}

/** Whether the ratios that the report has where operators' ratios apply are stored already. */
function hasSameRatios({ providers }: ProviderTree, { ratios, displacedRatio }: StoredReport): boolean {
  return providers.every(({ uuid, inventories }) =>
    [...inventories].every(
      ([name, { allocationRatio }]) => !ratios.has(name) || displacedRatio(uuid, name) === allocationRatio,
    ),
  );
}

/** Writes the reports that need no reshape. */
async function writeTogether(
  client: PoolClient,
  reports: readonly ProviderTree[],
): Promise<readonly (readonly [ProviderUuid, ReportOutcome])[]> {
  const stored = await lockTrees(
    client,
    reports.map(({ root }) => root),
  );
  const refused: (readonly [ProviderUuid, ReportOutcome])[] = [];
  const writable: Merged[] = [];
  for (const report of reports) {
    const merged = mergeReport(report, stored.get(report.root)!);
    if (merged.kind !== "merged") refused.push([report.root, merged]);
    else if (merged.shapeChanges.length === 0) writable.push(merged);
  }
  return [...refused, ...(await put(client, writable))];
}

/** Locks the trees in the order of all locks: reports of trees, then providers, then inventories. */
async function lockTrees(
  client: PoolClient,
  roots: readonly ProviderUuid[],
): Promise<ReadonlyMap<ProviderUuid, StoredReport>> {
  await client.query("select ledger_lock_trees($1)", [roots]);
  return readStoredReports(client, roots);
}

async function put(
  client: PoolClient,
  reports: readonly Merged[],
): Promise<readonly (readonly [ProviderUuid, ReportOutcome])[]> {
  if (reports.length === 0) return [];
  const { rows } = await client.query<PutTreesRow>("select * from ledger_put_trees($1::ledger_tree_batch)", [
    encodeTrees(reports.map(({ tree }) => tree)),
  ]);
  const outcomes = reports.map(({ tree, kept }, index) => reportOutcomeOf(decodeTreeOutcome(tree, rows[index]!), kept));
  await writeReports(
    client,
    reports
      .filter((_, index) => "kept" in outcomes[index]!)
      .map(({ tree, reported, kept }) => ({ root: tree.root, reported, kept })),
  );
  return reports.map(({ tree }, index) => [tree.root, outcomes[index]!]);
}

/** Ends the transaction of a reshape that is not possible. */
class ReshapeRefusal extends Error {}

/**
 * Changes the shape of a tree together with the allocations in it. First the new inventories are stored beside the old ones, then the allocations
 * move, then the unused old inventories are removed. If one of these steps is impossible, the transaction changes nothing.
 */
async function reshape(pool: Pool, report: ProviderTree, conflicts: readonly string[]): Promise<ReportOutcome> {
  try {
    return await inTransaction(pool, (client) => reshapeOnce(client, report), conflicts);
  } catch (error) {
    if (!(error instanceof ReshapeRefusal)) throw error;
    await pool.query("update reported_trees set refusal = $2, updated_at = now() where root = $1 and refusal <> $2", [
      report.root,
      error.message,
    ]);
    return { kind: "reshape-refused", why: error.message };
  }
}

async function reshapeOnce(client: PoolClient, report: ProviderTree): Promise<ReportOutcome> {
  await lockConsumers(client, report.root);
  const stored = await lockTrees(client, [report.root]);
  const merged = mergeReport(report, stored.get(report.root)!);
  if (merged.kind !== "merged") return merged;
  const [beside] = await put(client, [merged]);
  assert(beside !== undefined, "a report has no outcome");
  if (!("kept" in beside[1])) throw new ReshapeRefusal(`the new tree cannot be stored: ${beside[1].kind}`);
  // The allocations may have gone in the meantime.
  if (merged.shapeChanges.length === 0) return beside[1];
  await moveAllocations(client, report.root, merged);
  const after = await readStoredReports(client, [report.root]);
  const again = mergeReport(report, after.get(report.root)!);
  assert(again.kind === "merged", "a report that was merged once cannot be merged again");
  const [last] = await put(client, [again]);
  assert(last !== undefined, "a report has no outcome");
  return last[1].kind === "unchanged" ? { ...last[1], kind: "replaced" } : last[1];
}

/** Locks the consumers that hold something of the tree, before its providers, in the usual lock order. */
async function lockConsumers(client: PoolClient, root: ProviderUuid): Promise<void> {
  await client.query(
    `select from consumers c where c.uuid in (
       select a.consumer_uuid from allocations a join resource_providers p on p.id = a.provider_id
       join resource_providers r on r.id = p.root_id where r.uuid = $1
     ) order by c.uuid for update`,
    [root],
  );
}

async function moveAllocations(client: PoolClient, root: ProviderUuid, { shapeChanges }: Merged): Promise<void> {
  const holders = await client.query<{ uuid: never }>(
    `select distinct a.consumer_uuid as uuid from allocations a join resource_providers p on p.id = a.provider_id
     join resource_providers r on r.id = p.root_id where r.uuid = $1`,
    [root],
  );
  const consumers = await readHolders(
    client,
    holders.rows.map(({ uuid }) => uuid),
  );
  const plan = planReshape({ providers: await readProviders(client, [root]), shapeChanges, consumers });
  if (plan.kind === "refused") throw new ReshapeRefusal(plan.why);
  const { rows } = await client.query<LedgerApplyRow>("select * from ledger_apply($1::ledger_batch)", [
    encodeChanges([plan.change]),
  ]);
  const outcome = decodeOutcome(plan.change, rows[0]!);
  if (outcome.kind !== "committed") throw new ReshapeRefusal(describeAllocationRefusal(outcome));
}
