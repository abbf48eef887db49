import { overriding } from "../../runtime/overriding.ts";
import { type Driver, movesMemory, NotArrivedError } from "./driver.ts";
import type { GuestName } from "./journal.ts";

/**
 * Knows which pretended guests lack the memory of another guest that was to arrive, as a hypervisor does. Such a guest cannot start. It knows the guests
 * of all drivers that are wrapped, and outlives their agents.
 */
export class FakeMemory {
  /** The guests that wait for another one's memory. */
  readonly #awaited = new Set<string>();

  /** The same driver, whose guests start only with the memory that they were prepared for. A live hand-over that has succeeded may be repeated. */
  over(driver: Driver): Driver {
    const refuseWithoutMemory = (guest: GuestName) => {
      if (this.#awaited.has(keyOf(guest)))
        throw new NotArrivedError("the memory of the guest has not arrived on this host");
    };
    return overriding(driver, {
      prepare: async (order, control) => {
        const outcome = await driver.prepare(order, control);
        if (outcome.kind === "prepared" && movesMemory(order)) this.#awaited.add(keyOf(order));
        return outcome;
      },
      start: async (guest, signal) => {
        refuseWithoutMemory(guest);
        await driver.start(guest, signal);
      },
      power: async (guest, verb, signal, interfaces) => {
        if (verb !== "stop") refuseWithoutMemory(guest);
        await driver.power(guest, verb, signal, interfaces);
      },
      handOff: async (order, signal, onProgress) => {
        const to = keyOf({ host: order.toHost, attemptId: order.toAttemptId });
        const [power] = await driver.powersOf([order]);
        if (order.live && this.#awaited.has(to) && power !== "running" && power !== "paused")
          throw new Error(`the guest does not run (${power})`);
        await driver.handOff(order, signal, onProgress);
        this.#awaited.delete(to);
      },
      destroy: async (guest, signal) => {
        await driver.destroy(guest, signal);
        this.#awaited.delete(keyOf(guest));
      },
    });
  }
}

const keyOf = ({ host, attemptId }: Pick<GuestName, "host" | "attemptId">): string => `${host} ${attemptId}`;
