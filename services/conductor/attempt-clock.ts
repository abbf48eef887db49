import type { Clock, Timer } from "../../runtime/clock.ts";
import type { ConductorSettings } from "./settings.ts";

/**
 * The two limits of a build's attempt on a host. One is the grace period for a host that is not connected. The other is the deadline of the whole attempt
 * (waiting for a slot on the host, then building), in case the agent never answers.
 */
export class AttemptClock {
  readonly #clock: Clock;
  readonly #settings: Pick<ConductorSettings, "attemptTimeoutMs" | "hostGraceMs">;
  #grace: Timer | null = null;
  #deadline: Timer | null = null;
  /** The selection that `#deadline` belongs to. */
  #called = -1;

  constructor(clock: Clock, settings: Pick<ConductorSettings, "attemptTimeoutMs" | "hostGraceMs">) {
    this.#clock = clock;
    this.#settings = settings;
  }

  /** Begins the deadline of this selection's attempt, unless it has one. `onOver` gets the reason why the attempt has failed. */
  begin(selection: number, onOver: (reason: string) => void): void {
    if (this.#called === selection) return;
    const { attemptTimeoutMs, hostGraceMs } = this.#settings;
    this.#called = selection;
    this.#deadline?.cancel();
    const reason = `no outcome within ${Math.round((2 * attemptTimeoutMs) / 1_000)} s`;
    this.#deadline = this.#clock.setTimer(2 * attemptTimeoutMs + hostGraceMs, () => onOver(reason));
  }

  /** Ends the deadline for good, because the guest exists. */
  endDeadline(): void {
    this.#deadline?.cancel();
  }

  /** Lets the next `begin` begin a new deadline, although it may be for the same selection. */
  mayBeginAgain(): void {
    this.#called = -1;
  }

  /** Begins the grace period, unless it has begun. `onOver` gets a test for whether the host has not connected since. */
  awaitHost(onOver: (isStillAway: () => boolean) => void): void {
    this.#grace ??= this.#clock.setTimer(this.#settings.hostGraceMs, () => {
      const grace = this.#grace;
      onOver(() => this.#grace === grace);
    });
  }

  /** Ends the grace period, because the host is connected. */
  hostIsHere(): void {
    this.#grace?.cancel();
    this.#grace = null;
  }

  /** Ends both. */
  stop(): void {
    this.hostIsHere();
    this.#deadline?.cancel();
    this.#deadline = null;
    this.#called = -1;
  }
}
