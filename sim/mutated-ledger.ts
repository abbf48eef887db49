import { MemoryLedger, type MemoryTransaction } from "../adapters/memory/cell/memory-ledger.ts";
import type { Mutation } from "./mutations.ts";

/** A ledger in memory, with the bug of a mutation if that has one in the ledger. */
export function ledgerOf(mutation: Mutation | null): MemoryLedger {
  const mutated = mutation?.ledger;
  return mutated === undefined ? new MemoryLedger() : new MutatedLedger(mutated);
}

class MutatedLedger extends MemoryLedger {
  readonly #mutated: NonNullable<Mutation["ledger"]>;

  constructor(mutated: NonNullable<Mutation["ledger"]>) {
    super();
    this.#mutated = mutated;
  }

  override transact<Result>(work: (transaction: MemoryTransaction, xid: number) => Result): Result {
    return super.transact((transaction, xid) =>
      work(
        {
          ...transaction,
          applyAllocations: (change) => this.#mutated(change, (asked) => transaction.applyAllocations(asked)),
        },
        xid,
      ),
    );
  }
}
