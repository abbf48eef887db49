import type { AssignCell, AssignOutcome, PutOff, RequestFailure, RequestRecord } from "../../core/cell/api-store.ts";
import { Batcher, COMMIT_SPACING_MS } from "../../runtime/batcher.ts";
import type { SchedulerStore } from "./ports.ts";
import { writeBatcher } from "./write-batcher.ts";

/** What a scheduler writes to the API database, single calls that come together as one batch. */
export class RequestWrites {
  readonly #assigns: Batcher<AssignCell, AssignOutcome>;
  readonly #fails: Batcher<RequestFailure, RequestRecord | null>;
  readonly #putOffs: Batcher<PutOff, void>;
  readonly #arrivals: Batcher<{ readonly cell: string; readonly serverUuid: string }, void>;

  constructor(
    store: Pick<SchedulerStore, "assignCells" | "failRequests" | "requests" | "putOff" | "markArrived">,
    batchMax: number,
  ) {
    this.#assigns = new Batcher({
      run: (assigns) => store.assignCells(assigns),
      maxItems: batchMax,
      concurrency: 2,
      spacingMs: COMMIT_SPACING_MS,
    });
    this.#fails = new Batcher({ run: (failures) => failAndRead(store, failures), maxItems: batchMax });
    this.#putOffs = writeBatcher((putOffs) => store.putOff(putOffs), batchMax);
    this.#arrivals = writeBatcher(async (arrivals) => {
      const byCell = Map.groupBy(arrivals, ({ cell }) => cell);
      for (const [cell, arrived] of byCell) {
        const serverUuids = arrived.map(({ serverUuid }) => serverUuid);
        await store.markArrived(cell, serverUuids);
      }
    }, batchMax);
  }

  assign(assign: AssignCell): Promise<AssignOutcome> {
    return this.#assigns.submit(assign);
  }

  /** The row remembers that it is to be tried again, after a delay. */
  putOff(putOff: PutOff): Promise<void> {
    return this.#putOffs.submit(putOff);
  }

  /** Its cell has it. Nobody waits for this to be written: if it is not, a sweep asks the cell. */
  arrived(cell: string, serverUuid: string): void {
    this.#arrivals.submit({ cell, serverUuid }).catch(() => undefined);
  }

  /** Returns the request as it is afterwards: it may have ended, or be with another cell, in the meantime. Null: unknown. */
  fail(failure: RequestFailure): Promise<RequestRecord | null> {
    return this.#fails.submit(failure);
  }
}

async function failAndRead(
  store: Pick<SchedulerStore, "failRequests" | "requests">,
  failures: readonly RequestFailure[],
): Promise<(RequestRecord | null)[]> {
  await store.failRequests(failures);
  const records = await store.requests(failures.map((failure) => failure.serverUuid));
  const byUuid = new Map(records.map((record) => [record.serverUuid, record]));
  return failures.map((failure) => byUuid.get(failure.serverUuid) ?? null);
}
