import { assert } from "../../../core/assert.ts";
import { malformedList } from "../../../core/ledger/decide-tree.ts";
import { describeAllocationRefusal } from "../../../core/ledger/describe-allocation-refusal.ts";
import type { ProviderUuid } from "../../../core/ledger/ids.ts";
import {
  type KeptOffer,
  type MergedReport,
  mergeReport,
  type ReportedTree,
} from "../../../core/ledger/merge-report.ts";
import { planReshape } from "../../../core/ledger/plan-reshape.ts";
import type { ProviderTree } from "../../../core/ledger/provider-tree.ts";
import type { Applied, PureLedger } from "../../../core/ledger/pure-ledger.ts";
import { type ReportOutcome, reportOutcomeOf } from "../../../core/ledger/report-outcome.ts";
import type { RowChange } from "../../../core/ledger/row-change.ts";
import type { MemoryOperatorsWord } from "./memory-operators-word.ts";

interface StoredReport {
  readonly reported: ReportedTree;
  readonly kept: readonly KeptOffer[];
  readonly refusal: string;
}

const NO_REPORT: StoredReport = { reported: new Map(), kept: [], refusal: "" };

/** Stores the agents' reports of the trees of a memory ledger, and merges new reports. */
export class MemoryTreeReports {
  readonly #ledger: PureLedger;
  readonly #operators: MemoryOperatorsWord;
  readonly #byRoot = new Map<ProviderUuid, StoredReport>();

  constructor(options: { readonly ledger: PureLedger; readonly operators: MemoryOperatorsWord }) {
    this.#ledger = options.ledger;
    this.#operators = options.operators;
  }

  /** Returns a function that restores the reports as they are now. */
  remember(): () => void {
    const kept = new Map(this.#byRoot);
    return () => {
      this.#byRoot.clear();
      for (const [root, report] of kept) this.#byRoot.set(root, report);
    };
  }

  /** Forgets the reports of a tree that is gone. */
  forget(root: ProviderUuid): void {
    this.#byRoot.delete(root);
  }

  /** The stored part of the latest report of the tree. */
  latestOf(root: ProviderUuid): StoredReport {
    return this.#byRoot.get(root) ?? NO_REPORT;
  }

  /** The kept resources of all trees. */
  kept(): readonly KeptOffer[] {
    return [...this.#byRoot.values()].flatMap(({ kept }) => kept);
  }

  report(report: ProviderTree): Applied<ReportOutcome> {
    const malformed = malformedList(report);
    if (malformed !== null) return { outcome: reportOutcomeOf(malformed, []), rows: [] };
    const merged = this.#merge(report);
    if (merged.kind !== "merged") return { outcome: merged, rows: [] };
    return merged.shapeChanges.length === 0 ? this.#put(merged) : this.#reshape(report, merged);
  }

  #merge(report: ProviderTree): MergedReport {
    const ratios = this.#operators.ratiosOf(report.root);
    return mergeReport(report, {
      providers: this.#ledger.membersOf(report.root),
      ...this.latestOf(report.root),
      ratios,
      displacedRatio: (provider, name) =>
        ratios.has(name) ? (this.#operators.reportedRatio(provider, name) ?? undefined) : undefined,
    });
  }

  #put({ tree, kept, reported }: MergedReport & { readonly kind: "merged" }): Applied<ReportOutcome> {
    const { outcome, rows } = this.#ledger.putTree(this.#operators.apply(tree));
    if (outcome.kind === "replaced" || outcome.kind === "unchanged")
      this.#byRoot.set(tree.root, { reported, kept, refusal: "" });
    return { outcome: reportOutcomeOf(outcome, kept), rows };
  }

  #reshape(report: ProviderTree, merged: MergedReport & { readonly kind: "merged" }): Applied<ReportOutcome> {
    const undo = [this.#ledger.remember(), this.#operators.remember(), this.remember()];
    const refuse = (why: string): Applied<ReportOutcome> => {
      for (const part of undo) part();
      this.#byRoot.set(report.root, { ...this.latestOf(report.root), refusal: why });
      return { outcome: { kind: "reshape-refused", why }, rows: [] };
    };
    const rows: RowChange[] = [];
    const beside = this.#put(merged);
    if (beside.outcome.kind !== "replaced") return refuse(`the new tree cannot be stored: ${beside.outcome.kind}`);
    const plan = planReshape({
      providers: this.#ledger.membersOf(report.root),
      shapeChanges: merged.shapeChanges,
      consumers: this.#ledger.consumersOf(report.root),
    });
    if (plan.kind === "refused") return refuse(plan.why);
    const moved = this.#ledger.applyAllocations(plan.change);
    if (moved.outcome.kind !== "committed") return refuse(describeAllocationRefusal(moved.outcome));
    const again = this.#merge(report);
    assert(again.kind === "merged", "a report that was merged once cannot be merged again");
    const last = this.#put(again);
    rows.push(...beside.rows, ...moved.rows, ...last.rows);
    return { outcome: last.outcome.kind === "unchanged" ? { ...last.outcome, kind: "replaced" } : last.outcome, rows };
  }
}
