import type {
  AssignCell,
  AssignOutcome,
  PutOff,
  RequestFailure,
  RequestRecord,
} from "../../../core/stores/api/api-store.ts";
import { Batcher, COMMIT_SPACING_MS } from "../../../runtime/batcher.ts";
import type { SchedulerStore } from "../ports.ts";
import { writeBatcher } from "../write-batcher.ts";

/** Writes requests to the API database. Single calls that are made at about the same time go to the store as one batch. */
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

  /** Records in the request's row that it must be tried again after a delay. */
  putOff(putOff: PutOff): Promise<void> {
    return this.#putOffs.submit(putOff);
  }

  /** Records that the request has reached its cell. The caller does not wait for the write: if it fails, a sweep asks the cell. */
  arrived(cell: string, serverUuid: string): void {
    this.#arrivals.submit({ cell, serverUuid }).catch(() => undefined);
  }

  /**
   * Returns the request as it is afterwards, or null when it is unknown. The request may have ended or gone to another cell in the
   * meantime.
   */
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
