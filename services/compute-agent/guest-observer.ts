import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import type { Driver, FoundPower } from "./driver.ts";
import type { AgentEvents } from "./events.ts";
import type { GuestChains } from "./guest-chains.ts";
import type { GuestStore } from "./guest-store.ts";
import type { GuestEntry } from "./guest-table.ts";
import type { GuestName, GuestState } from "./journal.ts";
import { messageOf } from "./message-of.ts";

const LOOK_TIMEOUT_MS = 5_000;

/** Asks the driver for the real state of guests, and corrects the journal where it differs. */
export class GuestObserver {
  readonly #store: GuestStore;
  readonly #chains: GuestChains;
  readonly #driver: Driver;
  readonly #clock: Clock;
  readonly #events: AgentEvents;

  constructor(deps: {
    readonly store: GuestStore;
    readonly chains: GuestChains;
    readonly driver: Driver;
    readonly clock: Clock;
    readonly events: AgentEvents;
  }) {
    this.#store = deps.store;
    this.#chains = deps.chains;
    this.#driver = deps.driver;
    this.#clock = deps.clock;
    this.#events = deps.events;
  }

  /** The guest's real state, which may differ from the journal's. Null when the driver cannot tell. */
  async powerOf(guest: GuestEntry): Promise<GuestState | null> {
    const [found] = await this.#look([guest]);
    return stateOf(guest, found);
  }

  /**
   * Corrects the journal where it differs from the host, for example after a guest shut itself down, or after a driver completed a call
   * late. Guests with work in progress are left alone.
   */
  async correct(guests: readonly GuestEntry[]): Promise<void> {
    const settled = guests.filter((guest) => isKept(guest) && !this.#chains.isBusy(guest));
    const found = await this.#look(settled);
    await Promise.all(settled.map((guest, index) => this.#correct(guest, found[index])));
  }

  async #correct(guest: GuestEntry, found: FoundPower | undefined): Promise<void> {
    const state = stateOf(guest, found);
    if (state === null || state === guest.state || guest.state === "failed") return;
    // A newer record, or an order, may have come during the look.
    if (this.#store.guest(guest.host, guest.attemptId) !== guest || this.#chains.isBusy(guest)) return;
    const { host, serverUuid, attemptId, revision } = guest;
    this.#events.foundChanged(guest, guest.state, state);
    await this.#store.record({ kind: "guest", host, serverUuid, attemptId, state, atMs: this.#clock.now(), revision });
  }

  async #look(guests: readonly GuestName[]): Promise<readonly FoundPower[]> {
    if (guests.length === 0) return [];
    const names = guests.map(({ host, serverUuid, attemptId }) => ({ host, serverUuid, attemptId }));
    try {
      const look = this.#driver.powersOf(names);
      return await withDeadline(look, LOOK_TIMEOUT_MS, "the driver's look at its guests", this.#clock);
    } catch (error) {
      this.#events.lookFailed(messageOf(error));
      return [];
    }
  }
}

const isKept = ({ state }: GuestEntry): boolean => state !== "building" && state !== "failed";

/** Null when the state is unknown or the host has no such guest. */
function stateOf(guest: GuestEntry, found: FoundPower | undefined): GuestState | null {
  if (found === undefined || found === "missing") return null;
  // A guest that never ran is also found stopped.
  return found === "stopped" && guest.state === "prepared" ? "prepared" : found;
}
