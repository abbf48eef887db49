import type { AllocationChange, AllocationOutcome } from "./allocation-change.ts";
import { decideAllocations } from "./decide-allocations.ts";
import { decideTree, removalOfTree } from "./decide-tree.ts";
import type { ConsumerUuid, ProviderUuid } from "./ids.ts";
import type { LedgerDump } from "./ledger-dump.ts";
import {
  byProviderThenClass,
  copyLedger,
  dumpLedger,
  emptyLedger,
  evolve,
  type Holder,
  type LedgerDecision,
  type LedgerState,
  rowsOf,
} from "./ledger-state.ts";
import type { AllocationItem, Provider } from "./model.ts";
import type { ProviderTree, TreeOutcome } from "./provider-tree.ts";
import type { RowChange } from "./row-change.ts";

/** An outcome, and the rows that it changed. */
export interface Applied<Outcome> {
  readonly outcome: Outcome;
  readonly rows: readonly RowChange[];
}

/**
 * The pure implementation of the ledger: a state that decisions change one after the other. It is synchronous and uses neither a clock nor
 * randomness, so the same calls always produce the same state. It is the oracle of tests, and the ledger of simulations and of in-memory
 * cells.
 */
export class PureLedger {
  #state: LedgerState = emptyLedger();

  /** Decides the change and applies it unless it is refused. Cost: proportional to the change. */
  applyAllocations(change: AllocationChange): Applied<AllocationOutcome> {
    return this.#apply(decideAllocations(this.#state, change));
  }

  /** Decides the tree and applies it unless it is refused. Cost: proportional to the tree. */
  putTree(tree: ProviderTree): Applied<TreeOutcome> {
    return this.#apply(decideTree(this.#state, tree));
  }

  /** Removes a whole tree, of which nothing may be allocated. Cost: proportional to the tree. */
  removeTree(root: ProviderUuid): Applied<void> {
    return this.#apply(removalOfTree(this.#state, root));
  }

  /** The consumer's allocations, sorted by provider and class. Empty when the consumer does not exist. */
  allocationsOf(consumer: ConsumerUuid): readonly AllocationItem[] {
    return [...(this.#state.consumers.get(consumer)?.items ?? [])].sort(byProviderThenClass);
  }

  /** The providers of the tree, in no particular order. Empty when there is no such root. */
  membersOf(root: ProviderUuid): readonly Provider[] {
    return [...(this.#state.trees.get(root) ?? [])].map((uuid) => this.#state.providers.get(uuid)!);
  }

  /** Consumers that hold something of the tree, with all that they hold. Cost: proportional to all consumers. */
  consumersOf(root: ProviderUuid): readonly Holder[] {
    const members = this.#state.trees.get(root);
    return [...this.#state.consumers.values()].filter(({ items }) =>
      items.some(({ provider }) => members?.has(provider) === true),
    );
  }

  /** All rows that a view needs to show the present ledger. */
  rows(): readonly RowChange[] {
    return rowsOf(this.#state);
  }

  /** Returns a function that restores the present state. */
  remember(): () => void {
    const kept = copyLedger(this.#state);
    return () => {
      this.#state = copyLedger(kept);
    };
  }

  dump(): LedgerDump {
    return dumpLedger(this.#state);
  }

  /** The same as `dump` without order and copies. Only for a caller that has read it before the ledger changes again. */
  present(): LedgerDump {
    return { providers: [...this.#state.providers.values()], consumers: [...this.#state.consumers.values()] };
  }

  #apply<Outcome>(decision: LedgerDecision<Outcome>): Applied<Outcome> {
    evolve(this.#state, decision.delta);
    return { outcome: decision.outcome, rows: decision.delta.rows };
  }
}
