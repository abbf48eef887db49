import { randomUUID } from "node:crypto";
import type { Migration } from "../../core/tasks/migration.ts";
import { planOperation } from "../../core/tasks/plan-operation.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Ticker } from "../../runtime/ticker.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorStore } from "./ports.ts";
import type { ConductorSettings } from "./settings.ts";
import { TakeCounts } from "./take-counts.ts";

const LOOK_MS_MAX = 10_000;
const CONFIRMS_MAX = 100;

/**
 * Confirms resizes and cold migrations that were neither confirmed nor reverted in time. All conductors of the cell do this at once. One of
 * them begins the confirmation, and the others find that it is already running. No message is sent for the task, so a sweep takes it.
 *
 * Some moves cannot be confirmed now, and that may last: another guest of the server is in quarantine, or the record is unreadable. So each look continues after
 * the last move that the look before it tried, and after the last page it starts over. Any number of such moves only makes the others wait for some looks.
 */
export class ResizeConfirmer {
  readonly #ticker: Ticker;
  readonly #isWanted: boolean;

  constructor(options: {
    readonly store: Pick<ConductorStore, "unconfirmed" | "servers" | "begin">;
    readonly clock: Clock;
    readonly events: ConductorEvents;
    readonly settings: Pick<ConductorSettings, "confirmAfterMs">;
  }) {
    const { store, clock, events, settings } = options;
    const unreadable = new TakeCounts();
    /** The server of the move that was tried last. Null when the next look is at the first page. */
    let after: string | null = null;
    const confirm = async (migration: Migration): Promise<void> => {
      if (migration.operation === null) {
        if (unreadable.count(migration.uuid) === 1) events.moveUnreadable(migration);
        return;
      }
      const [server] = await store.servers([migration.serverUuid]);
      if (server === undefined) return;
      const planned = planOperation({ taskId: randomUUID(), kind: "confirm", server, holding: null, migration });
      if (planned.kind !== "planned") return;
      const [outcome] = await store.begin([planned.begin]);
      if (outcome?.kind === "begun") events.confirmedLate(server.uuid);
    };
    this.#isWanted = settings.confirmAfterMs > 0;
    this.#ticker = new Ticker({
      clock,
      pauseMs: Math.min(LOOK_MS_MAX, Math.max(50, settings.confirmAfterMs / 4)),
      work: async () => {
        const page = await store.unconfirmed(settings.confirmAfterMs, CONFIRMS_MAX, after);
        for (const migration of page) {
          after = migration.serverUuid;
          await confirm(migration);
        }
        if (page.length < CONFIRMS_MAX) after = null;
      },
      onError: (error) => events.databaseFailed("confirm", error),
    });
  }

  start(): void {
    if (this.#isWanted) this.#ticker.start();
  }

  async stop(): Promise<void> {
    if (this.#isWanted) await this.#ticker.stop();
  }
}
