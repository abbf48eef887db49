import { Batcher, COMMIT_SPACING_MS } from "../../../runtime/batcher.ts";
import type { ApiEvents } from "../events.ts";
import type { RequestsPort } from "../ports.ts";

interface Deletion {
  /** The cell that says so; null: the server was never assigned to a cell. */
  readonly cell: string | null;
  readonly serverUuid: string;
}

/** Notes in the API database which servers are gone from their cells; the notes of one moment share a transaction for each cell. */
export class DeletionMarker {
  readonly #marks: Batcher<Deletion, void>;
  readonly #events: ApiEvents;
  readonly #pending = new Set<Promise<void>>();

  constructor(deps: { readonly store: Pick<RequestsPort, "markDeleted">; readonly events: ApiEvents }) {
    this.#events = deps.events;
    this.#marks = new Batcher({
      run: async (deletions) => {
        for (const [cell, ofCell] of Map.groupBy(deletions, (deletion) => deletion.cell)) {
          await deps.store.markDeleted(cell, [...new Set(ofCell.map(({ serverUuid }) => serverUuid))]);
        }
        return deletions.map((): void => undefined);
      },
      maxItems: 1000,
      spacingMs: COMMIT_SPACING_MS,
    });
  }

  /** Resolves when the note is stored. */
  mark(cell: string | null, serverUuid: string): Promise<void> {
    return this.#marks.submit({ cell, serverUuid });
  }

  /** For callers that need not wait: a note that fails is made by the schedulers' sweep. */
  markSoon(cell: string | null, serverUuid: string): void {
    const marked = this.mark(cell, serverUuid)
      .catch((error: unknown) => this.#events.markFailed(serverUuid, error))
      .finally(() => this.#pending.delete(marked));
    this.#pending.add(marked);
  }

  async settle(): Promise<void> {
    await Promise.all(this.#pending);
  }
}
