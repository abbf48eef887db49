import { countedAmounts } from "../../../../core/stores/api/counted-amounts.ts";
import type { MoveStore } from "../../../../core/stores/api/move-store.ts";
import { NO_SERVERS, type ServerAmounts } from "../../../../core/stores/api/quota-limits.ts";
import type { ChargedResize, QuotaStore } from "../../../../core/stores/api/quota-store.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import { Ticker } from "../../../../runtime/ticker.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { ApiEvents } from "../../events.ts";
import type { RequestsPort } from "../../ports.ts";

/** Resizes of one round. */
const BATCH_MAX = 100;

/**
 * Updates the amounts of resized servers to their flavors. A resize is charged before it is accepted, and it ends in a cell, which does not
 * report this. So each charged server is looked at from time to time until it has no operation and nothing to confirm; then its present
 * amounts are counted. A cell that does not answer changes nothing.
 *
 * A charge is left alone for `settleMs`, which is longer than the call that made it may take to have its move accepted.
 */
export class ResizeSettler {
  readonly #quotas: QuotaStore;
  readonly #store: Pick<RequestsPort, "requests">;
  readonly #moves: Pick<MoveStore, "waiting">;
  readonly #cells: Cells;
  readonly #settleMs: number;
  readonly #ticker: Ticker;

  constructor(
    deps: {
      readonly quotas: QuotaStore;
      readonly store: Pick<RequestsPort, "requests">;
      readonly moves: Pick<MoveStore, "waiting">;
      readonly cells: Cells;
      readonly events: ApiEvents;
      readonly clock: Clock;
    },
    options: { readonly pollMs: number; readonly settleMs: number },
  ) {
    this.#quotas = deps.quotas;
    this.#store = deps.store;
    this.#moves = deps.moves;
    this.#cells = deps.cells;
    this.#settleMs = options.settleMs;
    this.#ticker = new Ticker({
      clock: deps.clock,
      pauseMs: options.pollMs,
      work: () => this.settle(),
      onError: (error) => deps.events.settlingFailed(error),
    });
  }

  start(): void {
    this.#ticker.start();
  }

  stop(): Promise<void> {
    return this.#ticker.stop();
  }

  /** Looks at the charged resizes that are due. Rejects as the API database does. */
  async settle(): Promise<void> {
    for (const resize of await this.#quotas.chargedResizes(this.#settleMs, BATCH_MAX)) {
      const amounts = await this.#amountsOf(resize);
      if (amounts !== null) await this.#quotas.settleResize(resize, amounts);
    }
  }

  /** Returns the amounts of the server, or null while they are undecided or unknown. */
  async #amountsOf({ serverUuid }: ChargedResize): Promise<ServerAmounts | null> {
    const [record] = await this.#store.requests([serverUuid]);
    if (record === undefined || record.state === "cancelled" || record.state === "deleted") return NO_SERVERS;
    // A server that is deleted softly is not counted, so its present amounts would be lost.
    if (record.softlyDeleted) return null;
    if (record.cell === null) return countedAmounts(record.spec);
    if ((await this.#moves.waiting([serverUuid])).length > 0) return null;
    const answer = await this.#cells.get(record.cell)?.server(serverUuid);
    if (answer === undefined || answer.kind === "unreachable" || answer.value === null) return null;
    const { status, taskState, spec } = answer.value;
    return taskState !== null || status === "VERIFY_RESIZE" ? null : countedAmounts(spec);
  }
}
