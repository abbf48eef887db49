import { areSoundAmounts, NO_AMOUNTS, type TransferProgress } from "../../core/agent/transfer-progress.ts";
import type { HandOffProgress } from "../../proto/gen/berth/agent.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorStore } from "./ports.ts";

/** The API shows amounts that are at most this old. */
const WRITE_EVERY_MS = 1_000;

/**
 * Writes how far hand-overs have come, the latest amounts of all of them in one statement. Nothing depends on these rows except what people
 * see, so a write that fails is not repeated: the next report follows soon.
 */
export class TransferRecorder {
  readonly #store: Pick<ConductorStore, "noteTransfers">;
  readonly #clock: Clock;
  readonly #events: ConductorEvents;
  /** The figures that are not yet written, by migration. */
  readonly #latest = new Map<string, TransferProgress>();
  #timer: Timer | null = null;

  constructor(options: {
    readonly store: Pick<ConductorStore, "noteTransfers">;
    readonly clock: Clock;
    readonly events: ConductorEvents;
  }) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#events = options.events;
  }

  note(
    migrationUuid: string,
    { memory = NO_AMOUNTS, disks = NO_AMOUNTS }: Pick<HandOffProgress, "memory" | "disks">,
  ): void {
    // Amounts that the database cannot store would make it refuse the statement, and with it the amounts of all other moves.
    if (!areSoundAmounts(memory) || !areSoundAmounts(disks)) return;
    this.#latest.set(migrationUuid, { memory, disks });
    this.#timer ??= this.#clock.setTimer(WRITE_EVERY_MS, () => this.#write());
  }

  stop(): void {
    this.#timer?.cancel();
    this.#latest.clear();
  }

  #write(): void {
    const notes = Array.from(this.#latest, ([migrationUuid, progress]) => ({ migrationUuid, progress }));
    this.#latest.clear();
    this.#timer = null;
    this.#store.noteTransfers(notes).catch((error) => this.#events.databaseFailed("transfers", error));
  }
}
