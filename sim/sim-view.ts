import type { MemoryCellStore } from "../adapters/memory/cell/memory-cell-store.ts";
import { LedgerView } from "../core/ledger/ledger-view.ts";
import type { RowChange } from "../core/ledger/row-change.ts";
import { LiveCellFacts, viewWithFacts } from "../core/scheduling/live-cell-facts.ts";
import { ViewError, type ViewSource } from "../core/stores/cell/view-source.ts";
import type { Network } from "./network.ts";
import type { SimProcess } from "./sim-process.ts";

/** Interval in milliseconds at which the stream is requested again while the network is cut. */
const RETRY_MS = 200;

interface FollowedCell {
  readonly name: string;
  readonly place: string;
  readonly store: MemoryCellStore;
}

/**
 * A process's view of a cell, which follows the cell over the network: changes arrive in order and late, and not at all while the network
 * is cut.
 */
export class SimView implements ViewSource {
  readonly view = new LedgerView();
  readonly facts: LiveCellFacts;
  readonly #process: SimProcess;
  readonly #cell: FollowedCell;
  readonly #network: Network;
  readonly #handlers = new Set<(xid: number) => void>();
  readonly #stream: { readonly xid: number; readonly rows: readonly RowChange[] }[] = [];
  #waiting: { readonly position: number; readonly done: () => void }[] = [];
  #committed = 0;
  #applied = 0;
  #moving = false;
  #ready = false;

  constructor(process: SimProcess, cell: FollowedCell, network: Network) {
    this.#process = process;
    this.#cell = cell;
    this.#network = network;
    this.facts = new LiveCellFacts(cell.name, this.view);
    const unfollow = cell.store.follow((xid, rows) => {
      this.#committed += 1;
      this.#stream.push({ xid, rows });
      if (!this.#moving) this.#next();
    });
    process.onKill(unfollow);
  }

  get ready(): boolean {
    return this.#ready;
  }

  onApplied(handler: (xid: number) => void): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  waitUntilSeen(deadlineMs: number): Promise<boolean> {
    const { name, place } = this.#cell;
    return new Promise((resolve, reject) => {
      const timer = this.#process.clock.setTimer(deadlineMs, () =>
        reject(new ViewError("behind", name, `it did not catch up within ${deadlineMs} ms`)),
      );
      const done = () => {
        timer.cancel();
        resolve(false);
      };
      this.#process
        .call(place, async () => this.#committed)
        .then((position) => {
          this.#waiting.push({ position, done });
          this.#settle();
        })
        // When there is no answer, the deadline decides.
        .catch(() => {});
    });
  }

  #next(): void {
    const [from, to] = [this.#cell.place, this.#process.name];
    this.#moving = this.#stream.length > 0;
    if (!this.#moving) return;
    if (this.#network.isCut(from, to)) {
      this.#process.clock.setTimer(RETRY_MS, () => this.#next());
      return;
    }
    this.#process.clock.setTimer(this.#network.delay(from, to), () => {
      // All changes committed by now arrive together, as they do after a stall.
      for (const { xid, rows } of this.#stream.splice(0)) this.#apply(xid, rows);
      this.#ready = true;
      this.#settle();
      this.#next();
    });
  }

  #apply(xid: number, rows: readonly RowChange[]): void {
    viewWithFacts(this.view, this.facts).applyAll(rows);
    this.#applied += 1;
    for (const handler of [...this.#handlers]) handler(xid);
  }

  #settle(): void {
    const seen = this.#waiting.filter(({ position }) => position <= this.#applied);
    this.#waiting = this.#waiting.filter(({ position }) => position > this.#applied);
    for (const { done } of seen) done();
  }
}
