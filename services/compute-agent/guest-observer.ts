import type { StopCause } from "../../core/agent/stop-cause.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import type { Driver, FoundPower } from "./driver.ts";
import type { AgentEvents } from "./events.ts";
import type { GuestChains } from "./guest-chains.ts";
import { LOOK_TIMEOUT_MS } from "./guest-missing.ts";
import type { GuestStore } from "./guest-store.ts";
import type { GuestEntry } from "./guest-table.ts";
import type { GuestName, GuestState } from "./journal.ts";
import { messageOf } from "./message-of.ts";

/** How long a guest must stay stopped before that is believed, because a reboot looks like a stop. Source: Nova's lifecycle events. */
const STOP_BELIEVED_MS = 15_000;
/**
 * How often, and how many times, a changed guest is looked at again while the driver cannot tell its state, because a QEMU process needs
 * some time to end.
 */
const LOOK_AGAIN_MS = 1_000;
const LOOKS_AGAIN = 30;

export interface FoundState {
  readonly state: GuestState;
  /** Why the guest stopped without an order, or null if it did not. */
  readonly cause: StopCause | null;
}

export interface ObserverSettings {
  /** Whether guests that stopped with their host run again afterwards, if their servers should run. True by default. */
  readonly resumesGuests?: boolean;
  /** How long a guest that stopped without an order must stay stopped before that is believed. `STOP_BELIEVED_MS` by default. */
  readonly stopBelievedMs?: number;
}

/** A guest that was found stopped. `look` is the number of the look that found it so. */
interface Doubt {
  readonly timer: Timer;
  readonly look: number;
}

/** Asks the driver for the real state of guests, and corrects the journal where it differs. */
export class GuestObserver {
  readonly #store: GuestStore;
  readonly #chains: GuestChains;
  readonly #driver: Driver;
  readonly #clock: Clock;
  readonly #events: AgentEvents;
  readonly #settings: ObserverSettings;
  /** Guests that were found stopped without an order, and whose stop is not believed yet. */
  readonly #doubted = new Map<string, Doubt>();
  /** Changed guests whose state the driver could not tell. */
  readonly #unclear = new Map<string, Timer>();
  /** Number of looks that have begun. */
  #looks = 0;
  #onStopped: (guest: GuestName) => void = () => {};
  #isClosed = false;

  constructor(deps: {
    readonly store: GuestStore;
    readonly chains: GuestChains;
    readonly driver: Driver;
    readonly clock: Clock;
    readonly events: AgentEvents;
    readonly settings?: ObserverSettings;
  }) {
    this.#store = deps.store;
    this.#chains = deps.chains;
    this.#driver = deps.driver;
    this.#clock = deps.clock;
    this.#events = deps.events;
    this.#settings = deps.settings ?? {};
  }

  /** Follows the changes that the driver reports. `onStopped` is called once for each guest that stopped without an order. */
  watch(onStopped: (guest: GuestName) => void): void {
    this.#onStopped = onStopped;
  }

  /** Looks at a guest that may have changed without an order, until the driver can tell its state. */
  changed(name: GuestName): Promise<void> {
    return this.#lookAtChanged(name, LOOKS_AGAIN);
  }

  async #lookAtChanged(name: GuestName, looksAgain: number): Promise<void> {
    const guest = this.#store.guest(name.host, name.attemptId);
    if (guest === undefined || this.#isClosed) return;
    const isClear = await this.#correctAll([guest], "later");
    const key = keyOf(name);
    this.#unclear.get(key)?.cancel();
    this.#unclear.delete(key);
    if (isClear || looksAgain === 0 || this.#isClosed) return;
    const again = () => {
      this.#lookAtChanged(name, looksAgain - 1).catch((error) => this.#events.journalFailed(error));
    };
    this.#unclear.set(key, this.#clock.setTimer(LOOK_AGAIN_MS, again));
  }

  close(): void {
    this.#isClosed = true;
    for (const { timer } of this.#doubted.values()) timer.cancel();
    this.#doubted.clear();
    for (const timer of this.#unclear.values()) timer.cancel();
    this.#unclear.clear();
  }

  /** The guest's real state, which may differ from the journal's. Null when the driver cannot tell. */
  async stateOf(guest: GuestEntry): Promise<FoundState | null> {
    const [looked] = await this.#look([guest]);
    const found = foundState(guest, looked);
    return found && { ...found, cause: found.cause ?? this.#causeOf(guest, looked, "later") };
  }

  /**
   * Corrects the journal where it differs from the host, for example after a driver completed a call late. Guests with work in progress are
   * left alone. A guest that stopped by itself is looked at again some time later, and its record is corrected if it is still stopped.
   */
  async correct(guests: readonly GuestEntry[]): Promise<void> {
    await this.#correctAll(guests, "later");
  }

  /**
   * Corrects the journal at the agent's start, when guests may have stopped with their host, though the driver does not know that. The `begun` ones are recorded as prepared, and the driver was told to start
   * them: one that does not run was hardly ever started, so it has not stopped by itself, and its server's start is repeated.
   */
  async correctAtStart(guests: readonly GuestEntry[], begun: readonly GuestName[] = []): Promise<void> {
    await this.#correctAll(guests, "at-start", new Set(begun.map(keyOf)));
  }

  /** Resolves with false when the driver could not tell the state of some guest. */
  async #correctAll(
    guests: readonly GuestEntry[],
    when: "at-start" | "later",
    begun: ReadonlySet<string> = new Set(),
  ): Promise<boolean> {
    const settled = guests.filter((guest) => isKept(guest) && !this.#chains.isBusy(guest));
    this.#looks++;
    const look = this.#looks;
    const looked = await this.#look(settled);
    const correct = async (guest: GuestEntry, index: number) => {
      const isBegun = begun.has(keyOf(guest));
      const found = isBegun ? foundBegun(looked[index]) : foundState(guest, looked[index]);
      if (found === null) return;
      if (found.cause === null) this.#trust(guest, look);
      if (found.state === guest.state) return;
      if (found.cause !== null) this.#doubt(guest, look);
      else {
        const isRepeated = isBegun && looked[index] !== "stopped-with-host";
        await this.#record(guest, { ...found, cause: isRepeated ? null : this.#causeOf(guest, looked[index], when) });
      }
    };
    await Promise.all(settled.map(correct));
    return settled.every((_, index) => isTold(looked[index]));
  }

  /**
   * Why the guest's server is stopped, too, or null if the guest runs again: it stopped with its host, and such guests are not resumed, or it stood still, and its memory is lost, so that
   * nobody could let it go on. Nova stops a paused server with such a guest as well (`_sync_instance_power_state`). Whether the server was paused, only the cell knows.
   */
  #causeOf({ state }: GuestEntry, found: FoundPower | undefined, when: "at-start" | "later"): StopCause | null {
    const isWithHost = found === "stopped-with-host";
    if (!isWithHost && (found !== "stopped" || when === "later")) return null;
    if (this.#settings.resumesGuests === false) return "host-restarted";
    return isWithHost && state === "paused" ? "halted-with-host" : null;
  }

  /**
   * Called when a look found that a guest has not stopped by itself. The guest is no longer in doubt, and its next stop is doubted for the
   * whole time again. A look that began before the stop was seen may show the state before it.
   */
  #trust(guest: GuestEntry, look: number): void {
    const key = keyOf(guest);
    const doubt = this.#doubted.get(key);
    if (doubt === undefined || look <= doubt.look) return;
    doubt.timer.cancel();
    this.#doubted.delete(key);
  }

  #doubt(guest: GuestEntry, look: number): void {
    const key = keyOf(guest);
    if (this.#doubted.has(key) || this.#isClosed) return;
    const believe = () => {
      this.#doubted.delete(key);
      this.#believe(guest).catch((error) => this.#events.journalFailed(error));
    };
    const timer = this.#clock.setTimer(this.#settings.stopBelievedMs ?? STOP_BELIEVED_MS, believe);
    this.#doubted.set(key, { timer, look });
  }

  async #believe(guest: GuestEntry): Promise<void> {
    const found = this.#chains.isBusy(guest) ? null : await this.stateOf(guest);
    if (found === null || found.cause === null || this.#isClosed) return;
    if (await this.#record(guest, found)) this.#onStopped(guest);
  }

  /** Resolves with false when a newer record, or an order, has come during the look. */
  async #record(guest: GuestEntry, { state, cause }: FoundState): Promise<boolean> {
    if (guest.state === "failed" || this.#store.isBuried(guest)) return false;
    if (this.#store.guest(guest.host, guest.attemptId) !== guest || this.#chains.isBusy(guest)) return false;
    const { host, serverUuid, attemptId, revision } = guest;
    this.#events.foundChanged(guest, guest.state, cause ?? state);
    const name = { host, serverUuid, attemptId };
    const by = cause === null ? {} : { cause };
    await this.#store.record({ kind: "guest", ...name, state, atMs: this.#clock.now(), revision, ...by });
    return true;
  }

  async #look(guests: readonly GuestName[]): Promise<readonly FoundPower[]> {
    if (guests.length === 0) return [];
    const names = guests.map(({ host, serverUuid, attemptId }) => ({ host, serverUuid, attemptId }));
    try {
      const look = this.#driver.powersOf(names);
      return await withDeadline(look, LOOK_TIMEOUT_MS, "reading the driver's guests", this.#clock);
    } catch (error) {
      this.#events.lookFailed(messageOf(error));
      return [];
    }
  }
}

const keyOf = ({ host, attemptId }: GuestName): string => `${host} ${attemptId}`;
const isKept = ({ state }: GuestEntry): boolean => state !== "building" && state !== "failed";

const isTold = (found: FoundPower | undefined): found is Exclude<FoundPower, "unknown"> =>
  found !== undefined && found !== "unknown";

/** Null when the state is unknown or the host has no such guest. */
function foundState(guest: GuestEntry, found: FoundPower | undefined): FoundState | null {
  if (!isTold(found) || found === "missing") return null;
  if (found === "shut-down" || found === "crashed") return { state: "stopped", cause: found };
  if (found === "stopped-with-host") return { state: "stopped", cause: null };
  // A guest that never ran is also found stopped.
  const state = found === "stopped" && guest.state === "prepared" ? "prepared" : found;
  return { state, cause: null };
}

/** The state of a guest whose first start may have been broken off. While that is unknown it counts as running, since it may run. */
function foundBegun(found: FoundPower | undefined): FoundState | null {
  if (!isTold(found)) return { state: "running", cause: null };
  if (found === "missing") return null;
  const isHalted = found === "shut-down" || found === "crashed" || found === "stopped-with-host";
  return { state: isHalted ? "stopped" : found, cause: null };
}
