import { Batcher, COMMIT_SPACING_MS } from "../../../runtime/batcher.ts";
import type { ApiEvents } from "../events.ts";
import type { RequestsPort } from "../ports.ts";

/** Notes in the API database what is gone from its cell, those of one moment in one transaction. */
export class DeletionMarker {
  readonly #marks: Batcher<string, void>;
  readonly #events: ApiEvents;
  readonly #pending = new Set<Promise<void>>();

  constructor(deps: { readonly store: Pick<RequestsPort, "markDeleted">; readonly events: ApiEvents }) {
    this.#events = deps.events;
    this.#marks = new Batcher({
      run: async (uuids) => {
        await deps.store.markDeleted([...new Set(uuids)]);
        return uuids.map((): void => undefined);
      },
      maxItems: 1000,
      spacingMs: COMMIT_SPACING_MS,
    });
  }

  /** Resolves when the note is stored. */
  mark(serverUuid: string): Promise<void> {
    return this.#marks.submit(serverUuid);
  }

  /** For callers that need not wait: a note that fails is made by the schedulers' sweep. */
  markSoon(serverUuid: string): void {
    const marked = this.mark(serverUuid)
      .catch((error: unknown) => this.#events.markFailed(serverUuid, error))
      .finally(() => this.#pending.delete(marked));
    this.#pending.add(marked);
  }

  async settle(): Promise<void> {
    await Promise.all(this.#pending);
  }
}
