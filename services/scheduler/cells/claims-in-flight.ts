import type { LedgerView } from "../../../core/ledger/ledger-view.ts";
import type { AllocationItem } from "../../../core/ledger/model.ts";
import type { ViewSource } from "../../../core/stores/cell/view-source.ts";
import type { Clock } from "../../../runtime/clock.ts";

/** Maximum number of transactions that are remembered as applied, for answers that arrive after the view has applied the transaction. */
const APPLIED_MAX = 4_096;

/**
 * This scheduler's claims in one cell that its view does not show yet. A claim goes through these states: asked (the view counts it as used
 * from the choice on) → committed (still counted, until the view has applied its transaction) → seen. A claim that fails is dropped
 * instead.
 */
export class ClaimsInFlight {
  readonly #view: LedgerView;
  readonly #clock: Clock;
  readonly #expiryMs: number;
  readonly #stopListening: () => void;
  readonly #asked = new Map<string, PromiseWithResolvers<void>>();
  /** The committed claims by transaction, in the order in which they were committed. */
  readonly #committed = new Map<number, { readonly ids: string[]; readonly atMs: number }>();
  readonly #applied = new Set<number>();

  constructor(options: {
    readonly view: LedgerView;
    readonly source: ViewSource;
    readonly clock: Clock;
    readonly expiryMs: number;
  }) {
    this.#view = options.view;
    this.#clock = options.clock;
    this.#expiryMs = options.expiryMs;
    this.#stopListening = options.source.onApplied((xid) => this.#onApplied(xid));
  }

  /** Number of claims that searches count as used. */
  get count(): number {
    let count = this.#asked.size;
    for (const { ids } of this.#committed.values()) count += ids.length;
    return count;
  }

  ask(id: string, items: readonly AllocationItem[]): void {
    this.#expire();
    this.#asked.set(id, Promise.withResolvers());
    this.#view.reserve(id, items);
  }

  commit(id: string, xid: number): void {
    this.#answer(id);
    if (this.#applied.has(xid)) {
      this.#view.release(id);
      return;
    }
    const known = this.#committed.get(xid);
    if (known) known.ids.push(id);
    else this.#committed.set(xid, { ids: [id], atMs: this.#clock.monotonic() });
  }

  /** Stops counting a claim that failed or whose outcome is unknown. Does nothing if the claim was committed. */
  giveUpUnlessCommitted(id: string): void {
    if (!this.#asked.has(id)) return;
    this.#answer(id);
    this.#view.release(id);
  }

  /** Resolves once each claim that is waiting for an answer at the time of the call has its answer. */
  async answered(): Promise<void> {
    await Promise.all([...this.#asked.values()].map(({ promise }) => promise));
  }

  close(): void {
    this.#stopListening();
    for (const id of this.#asked.keys()) this.#view.release(id);
    for (const { ids } of this.#committed.values()) for (const id of ids) this.#view.release(id);
    this.#committed.clear();
  }

  #answer(id: string): void {
    this.#asked.get(id)?.resolve();
    this.#asked.delete(id);
  }

  #onApplied(xid: number): void {
    this.#applied.add(xid);
    if (this.#applied.size > APPLIED_MAX) {
      for (const oldest of this.#applied) {
        this.#applied.delete(oldest);
        break;
      }
    }
    this.#see(xid);
  }

  #see(xid: number): void {
    const seen = this.#committed.get(xid);
    if (!seen) return;
    this.#committed.delete(xid);
    for (const id of seen.ids) this.#view.release(id);
  }

  /** Drops committed claims after a while, because a view that was reloaded shows their transactions without having announced them. */
  #expire(): void {
    const expiredAtMs = this.#clock.monotonic() - this.#expiryMs;
    for (const [xid, { atMs }] of this.#committed) {
      if (atMs > expiredAtMs) return;
      this.#see(xid);
    }
  }
}
