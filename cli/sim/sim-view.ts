import type { MemoryCellStore } from "../../adapters/memory/memory-cell-store.ts";
import type { RowChange } from "../../core/ledger/row-change.ts";
import { LedgerView } from "../../core/ledger/view.ts";
import { ViewError, type ViewSource } from "../../core/ledger/view-source.ts";
import type { Network } from "./network.ts";
import type { SimProcess } from "./sim-process.ts";

/** While the way is cut, the stream is asked for again so often. */
const RETRY_MS = 200;

export interface SimView {
  readonly view: LedgerView;
  readonly source: ViewSource;
}

/** A process's view of a cell that follows it over the network: in order, late, and standing still while the way is cut. */
export function simView(
  process: SimProcess,
  cell: { readonly name: string; readonly place: string; readonly store: MemoryCellStore },
  network: Network,
): SimView {
  const view = new LedgerView();
  const handlers = new Set<(xid: number) => void>();
  const waiting: { readonly from: number; readonly resolve: () => void }[] = [];
  const stream: { readonly xid: number; readonly rows: readonly RowChange[] }[] = [];
  let committed = 0;
  let applied = 0;
  let moving = false;
  let ready = false;

  const settle = () => {
    while (waiting.length > 0 && waiting[0]!.from <= applied) waiting.shift()!.resolve();
  };
  const next = () => {
    if (stream.length === 0) {
      moving = false;
      return;
    }
    moving = true;
    if (network.isCut(cell.place, process.name)) {
      process.clock.setTimer(RETRY_MS, next);
      return;
    }
    process.clock.setTimer(network.delay(cell.place, process.name), () => {
      // All that was committed by now comes in one go, as it does after a stall.
      for (const { xid, rows } of stream.splice(0)) {
        view.applyAll(rows);
        applied += 1;
        for (const handler of [...handlers]) handler(xid);
      }
      ready = true;
      settle();
      next();
    });
  };
  const unfollow = cell.store.follow((xid, rows) => {
    committed += 1;
    stream.push({ xid, rows });
    if (!moving) next();
  });
  process.onKill(unfollow);

  const source: ViewSource = {
    get ready() {
      return ready;
    },
    onApplied(handler) {
      handlers.add(handler);
      return () => handlers.delete(handler);
    },
    waitUntilSeen(deadlineMs) {
      return new Promise((resolve, reject) => {
        const timer = process.clock.setTimer(deadlineMs, () =>
          reject(new ViewError("behind", cell.name, `it did not catch up within ${deadlineMs} ms`)),
        );
        const done = () => {
          timer.cancel();
          resolve();
        };
        process
          .call(cell.place, async () => committed)
          .then((position) => {
            if (position <= applied) done();
            else {
              waiting.push({ from: position, resolve: done });
              waiting.sort((a, b) => a.from - b.from);
            }
          })
          // Without an answer the deadline decides.
          .catch(() => {});
      });
    },
  };
  return { view, source };
}
