import type { AssignCell, AssignOutcome, RequestFailure, RequestRecord } from "../../core/cell/api-store.ts";
import { Batcher, COMMIT_SPACING_MS } from "../../runtime/batcher.ts";
import type { SchedulerStore } from "./ports.ts";

/** What a scheduler writes to the API database, single calls that come together as one batch. */
export class RequestWrites {
  readonly #assigns: Batcher<AssignCell, AssignOutcome>;
  readonly #fails: Batcher<RequestFailure, RequestRecord | null>;

  constructor(store: Pick<SchedulerStore, "assignCells" | "failRequests" | "requests">, batchMax: number) {
    this.#assigns = new Batcher({
      run: (assigns) => store.assignCells(assigns),
      maxItems: batchMax,
      concurrency: 2,
      spacingMs: COMMIT_SPACING_MS,
    });
    this.#fails = new Batcher({ run: (failures) => failAndRead(store, failures), maxItems: batchMax });
  }

  assign(assign: AssignCell): Promise<AssignOutcome> {
    return this.#assigns.submit(assign);
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
