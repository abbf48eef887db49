import { trimLog } from "../../../adapters/qemu/trim-log.ts";
import type { Clock, Timer } from "../../../runtime/clock.ts";
import type { StorageGate } from "../../../runtime/storage-gate.ts";

/** How much of its console's output is kept for each guest. */
const CONSOLE_BYTES = 1_048_576;
const TRIM_EVERY_MS = 10_000;

/** Keeps the logs of the guests' consoles short, from time to time. QEMU itself never ends writing. */
export class ConsoleTrimmer {
  readonly #clock: Clock;
  readonly #logs: () => readonly string[];
  readonly #storage: StorageGate;
  #timer: Timer | null = null;

  /** `logs` returns the paths of the logs that there are now, on a storage that may hang. */
  constructor(clock: Clock, storage: StorageGate, logs: () => readonly string[]) {
    this.#storage = storage;
    this.#clock = clock;
    this.#logs = logs;
  }

  start(): void {
    this.#timer = this.#clock.setTimer(TRIM_EVERY_MS, () => {
      // A log that cannot be cut now is cut the next time.
      const trim = (log: string) => this.#storage.look(() => trimLog(log, CONSOLE_BYTES));
      Promise.allSettled(this.#logs().map(trim)).then(() => {
        if (this.#timer !== null) this.start();
      });
    });
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }
}
