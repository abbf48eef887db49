import type { Pool } from "pg";
import type { AllocationChange, AllocationOutcome } from "../../../core/ledger/allocation-change.ts";
import { malformedList } from "../../../core/ledger/decide-tree.ts";
import type { ConsumerUuid } from "../../../core/ledger/ids.ts";
import type { LedgerDump } from "../../../core/ledger/ledger-dump.ts";
import type { AllocationItem } from "../../../core/ledger/model.ts";
import type { ProviderTree, TreeOutcome } from "../../../core/ledger/provider-tree.ts";
import type { ReportOutcome } from "../../../core/ledger/report-outcome.ts";
import type { Ledger } from "../../../core/stores/cell/ledger-port.ts";
import { retryConflicts } from "../client/transaction.ts";
import { decodeOutcome, encodeChanges, type LedgerApplyRow } from "./encode-changes.ts";
import { CLAIM_ALONE, encodeFirstClaims, encodeLoneClaim, firstClaimOutcomes } from "./encode-first-claims.ts";
import { decodeTreeOutcome, encodeTrees, type PutTreesRow } from "./encode-trees.ts";
import { readAllocations, readDump } from "./read-ledger.ts";
import { reportTogether } from "./report-trees.ts";

/** Raised by ledger_put_trees when its trees share a UUID or a name. Such trees must be put one by one. */
const DEPENDENT_TREES = "BT001";
/** Errors that the Placement API may cause by creating or removing the same names at the same moment. */
const TREE_CONFLICTS = ["23503", "23505"];

/**
 * A cell's ledger in its Postgres database. It makes the same decisions as the pure implementation, in SQL under row locks. Throws the
 * driver's errors, after a few retries of deadlocks and serialization failures.
 */
export class PostgresLedger implements Ledger {
  readonly #pool: Pool;

  /** The caller keeps the pool and ends it. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /**
   * Calls one function in a transaction of its own, and a second one when claims of new consumers did not all fit. Cost: a round trip, a
   * commit, and some 40 µs for each claim.
   */
  async applyAllocations(changes: readonly AllocationChange[]): Promise<readonly AllocationOutcome[]> {
    if (changes.length === 0) return [];
    if (await this.#claimFirst(changes)) return firstClaimOutcomes(changes);
    const batch = encodeChanges(changes);
    const { rows } = await retryConflicts(() =>
      this.#pool.query<LedgerApplyRow>({
        name: "ledger_apply",
        text: "select * from ledger_apply($1::ledger_batch)",
        values: [batch],
      }),
    );
    return changes.map((change, index) => decodeOutcome(change, rows[index]!));
  }

  /** Makes all of the claims if they are claims of new consumers that fit together. Otherwise changes nothing. */
  async #claimFirst(changes: readonly AllocationChange[]): Promise<boolean> {
    const lone = encodeLoneClaim(changes);
    if (lone !== null) return this.#claims("ledger_claim_alone", CLAIM_ALONE, lone);
    const claims = encodeFirstClaims(changes);
    if (claims === null) return false;
    return this.#claims("ledger_claim_first", "select ledger_claim_first($1::ledger_first_claims) as claimed", [
      claims,
    ]);
  }

  async #claims(name: string, text: string, values: unknown[]): Promise<boolean> {
    const { rows } = await retryConflicts(() => this.#pool.query<{ claimed: boolean }>({ name, text, values }));
    return rows[0]!.claimed;
  }

  /**
   * Calls one function in a transaction of its own. Trees that take names or providers from each other are put one after the other, each in
   * a transaction, because the locks of several calls in one transaction would be out of order.
   */
  async putTrees(trees: readonly ProviderTree[]): Promise<readonly TreeOutcome[]> {
    return inIndependentRuns(trees, (run) => retryConflicts(() => putTogether(this.#pool, run), TREE_CONFLICTS));
  }

  /** Like `putTrees`, but it reads the trees first. Trees that stay as they are cost no lock. */
  async reportTrees(reports: readonly ProviderTree[]): Promise<readonly ReportOutcome[]> {
    return inIndependentRuns<ReportOutcome>(reports, (run) => reportTogether(this.#pool, run, TREE_CONFLICTS));
  }

  async allocationsOf(consumer: ConsumerUuid): Promise<readonly AllocationItem[]> {
    return readAllocations(this.#pool, consumer);
  }

  async dump(): Promise<LedgerDump> {
    return readDump(this.#pool);
  }
}

async function putTogether(pool: Pool, trees: readonly ProviderTree[]): Promise<TreeOutcome[]> {
  const { rows } = await pool.query<PutTreesRow>("select * from ledger_put_trees($1::ledger_tree_batch)", [
    encodeTrees(trees),
  ]);
  return trees.map((tree, index) => decodeTreeOutcome(tree, rows[index]!));
}

/**
 * Runs `put` on trees that are well formed and independent of each other. Trees that turn out to depend on each other are put one by one. The
 * answers are in the order of the trees.
 */
async function inIndependentRuns<Outcome>(
  trees: readonly ProviderTree[],
  put: (trees: readonly ProviderTree[]) => Promise<readonly Outcome[]>,
): Promise<readonly (Outcome | NonNullable<ReturnType<typeof malformedList>>)[]> {
  const putRun = async (run: readonly ProviderTree[]): Promise<readonly Outcome[]> => {
    try {
      return await put(run);
    } catch (error) {
      if ((error as { code?: string }).code !== DEPENDENT_TREES || run.length === 1) throw error;
    }
    const outcomes: Outcome[] = [];
    for (const tree of run) outcomes.push(...(await put([tree])));
    return outcomes;
  };
  const malformed = trees.map(malformedList);
  const written: Outcome[] = [];
  for (const run of independentRuns(trees.filter((_, index) => malformed[index] === null)))
    written.push(...(await putRun(run)));
  let next = 0;
  return malformed.map((outcome) => outcome ?? written[next++]!);
}

/** Cuts the list before each tree that shares a UUID or a name with an earlier one. */
function independentRuns(trees: readonly ProviderTree[]): readonly (readonly ProviderTree[])[] {
  const runs: ProviderTree[][] = [];
  let seen = new Set<string>();
  for (const tree of trees) {
    const marks = tree.providers.flatMap(({ uuid, name }) => [`uuid ${uuid}`, `name ${name}`]);
    const run = runs.at(-1);
    if (run !== undefined && !marks.some((mark) => seen.has(mark))) {
      run.push(tree);
    } else {
      runs.push([tree]);
      seen = new Set();
    }
    for (const mark of marks) seen.add(mark);
  }
  return runs;
}
