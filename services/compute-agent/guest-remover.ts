import type { Clock } from "../../runtime/clock.ts";
import { callDriver } from "./call-driver.ts";
import { DESTROY_TIMEOUT_MS, type Driver } from "./driver.ts";
import type { AgentEvents } from "./events.ts";
import type { GuestChains } from "./guest-chains.ts";
import type { GuestName } from "./journal.ts";
import { messageOf } from "./message-of.ts";

const DESTROYED = "the server was destroyed here meanwhile";

/** Lets the driver remove guests. Each removal goes through the guest's chain, so that no earlier work on the guest can end after it. */
export class GuestRemover {
  readonly #chains: GuestChains;
  readonly #driver: Driver;
  readonly #clock: Clock;
  readonly #events: AgentEvents;

  constructor(deps: {
    readonly chains: GuestChains;
    readonly driver: Driver;
    readonly clock: Clock;
    readonly events: AgentEvents;
  }) {
    this.#chains = deps.chains;
    this.#driver = deps.driver;
    this.#clock = deps.clock;
    this.#events = deps.events;
  }

  /**
   * Cancels all work on the guest, waits for its end, and removes the guest. Resolves with null when the guest is gone, and otherwise with
   * the reason.
   */
  async remove({ host, serverUuid, attemptId }: GuestName): Promise<string | null> {
    const name = { host, serverUuid, attemptId };
    const what = "the driver's destroy";
    const onStuck = () => this.#events.driverStuck(name, what);
    const work = (signal: AbortSignal) =>
      callDriver((raised) => this.#driver.destroy(name, raised), {
        ...{ signal, timeoutMs: DESTROY_TIMEOUT_MS, what, clock: this.#clock, onStuck },
      });
    try {
      await this.#chains.enter(name, work, { callOff: DESTROYED, isFinal: true });
      return null;
    } catch (error) {
      this.#events.leftover(name, messageOf(error));
      return messageOf(error);
    }
  }
}
