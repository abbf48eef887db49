import type { PortStore } from "../../../core/stores/api/port-store.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { Ticker } from "../../../runtime/ticker.ts";
import type { ApiEvents } from "../events.ts";

/** Longer than a call may take to have its servers accepted. */
const UNKNOWN_MS = 600_000;

/**
 * Gives up the ports of servers that are gone. An api does that when it receives the event of a deletion; this finds the ports whose event
 * no api received, and those of calls that ended before their servers were accepted.
 */
export class PortSweeper {
  readonly #ticker: Ticker;

  constructor(
    deps: { readonly networkPorts: PortStore; readonly events: ApiEvents; readonly clock: Clock },
    options: { readonly pollMs: number },
  ) {
    this.#ticker = new Ticker({
      clock: deps.clock,
      pauseMs: options.pollMs,
      work: async () => {
        await deps.networkPorts.sweepPorts(UNKNOWN_MS);
      },
      onError: (error) => deps.events.portsNotSwept(error),
    });
  }

  start(): void {
    this.#ticker.start();
  }

  stop(): Promise<void> {
    return this.#ticker.stop();
  }
}
