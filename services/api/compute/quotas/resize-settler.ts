import { countedAmounts } from "../../../../core/stores/api/counted-amounts.ts";
import type { MoveStore } from "../../../../core/stores/api/move-store.ts";
import { NO_SERVERS, type ServerAmounts } from "../../../../core/stores/api/quota-limits.ts";
import type { ChargedResize, QuotaStore, SeenCharge } from "../../../../core/stores/api/quota-store.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import { Ticker } from "../../../../runtime/ticker.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { ApiEvents } from "../../events.ts";
import type { RequestsPort } from "../../ports.ts";

/** Resizes of one round. */
const BATCH_MAX = 100;
/** How long after a confirmation or a revert has begun the server is looked at first. Each further pause is twice as long, and the last look is after half a minute. */
const FIRST_LOOK_MS = 250;
const LOOKS_MAX = 7;
/** How many servers are looked at so early. The others are found later. */
const HASTENED_MAX = 1_000;

/** A server that is looked at early. */
interface Hastened {
  readonly charge: SeenCharge;
  readonly looks: number;
  readonly dueMs: number;
}

/**
 * Updates the amounts of resized servers to their flavors. A resize is charged before it is accepted, and it ends in a cell, which does not
 * report this. So each charged server is looked at from time to time until it has no operation and nothing to confirm; then its present
 * amounts are counted. A cell that does not answer changes nothing.
 *
 * A charge is left alone for `settleMs`, which is longer than the call that made it may take to have its move accepted. Only the charge of a server whose move is confirmed or reverted is
 * looked at earlier (`hasten`), since that move has been accepted, so that a project can use the cores again as soon as the server has given them back.
 */
export class ResizeSettler {
  readonly #quotas: QuotaStore;
  readonly #store: Pick<RequestsPort, "requests">;
  readonly #moves: Pick<MoveStore, "waiting">;
  readonly #cells: Cells;
  readonly #settleMs: number;
  readonly #clock: Clock;
  readonly #ticker: Ticker;
  readonly #hastened = new Map<string, Hastened>();
  readonly #early: Ticker;

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
    const { clock } = deps;
    this.#clock = clock;
    const onError = (error: unknown) => deps.events.settlingFailed(error);
    this.#ticker = new Ticker({ clock, pauseMs: options.pollMs, work: () => this.settle(), onError });
    this.#early = new Ticker({ clock, pauseMs: FIRST_LOOK_MS, work: () => this.settleHastened(), onError });
  }

  start(): void {
    this.#ticker.start();
    this.#early.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#ticker.stop(), this.#early.stop()]);
  }

  /** The charge of a server whose resize is about to be confirmed or reverted, for `hasten`. Null if it must be left alone, because another call may have charged the server, too. */
  chargeOf(serverUuid: string): Promise<SeenCharge | null> {
    return this.#quotas.soleCharge(serverUuid);
  }

  /** Looks at the server soon, and again for half a minute. The charge was read while the server waited for the confirmation or revert that has begun, and that ends a resize: a migration charges nothing. */
  hasten(charge: SeenCharge): void {
    if (this.#hastened.size >= HASTENED_MAX) return;
    this.#hastened.set(charge.serverUuid, { charge, looks: 0, dueMs: this.#clock.monotonic() + FIRST_LOOK_MS });
  }

  /** Looks at the servers that are due early. Rejects as the API database does. */
  async settleHastened(): Promise<void> {
    for (const [serverUuid, { charge, looks, dueMs }] of this.#hastened) {
      const nowMs = this.#clock.monotonic();
      if (dueMs > nowMs) continue;
      if (looks + 1 === LOOKS_MAX) this.#hastened.delete(serverUuid);
      else
        this.#hastened.set(serverUuid, { charge, looks: looks + 1, dueMs: nowMs + FIRST_LOOK_MS * 2 ** (looks + 1) });
      const amounts = await this.#amountsOf(charge);
      if (amounts === null) continue;
      await this.#quotas.settleResize(charge, amounts);
      if (this.#hastened.get(serverUuid)?.charge === charge) this.#hastened.delete(serverUuid);
    }
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
