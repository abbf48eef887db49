import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import type { Clock, Timer } from "../../../runtime/clock.ts";
import type { GuestName } from "../journal.ts";
import { callOffHandOver } from "./hand-over.ts";

/** How long a cancelled live move continues, up to its switch-over, since the next order may be its forced form. */
const FORCE_GRACE_MS = 500;

interface CalledOffMove {
  readonly toAttemptId: string;
  readonly timer: Timer;
  /** Settles when the transfer has ended. Null while it continues, and after an attempt to end it failed. */
  ending: Promise<void> | null;
}

/** Live moves of guests that were cancelled and have not ended yet. */
export class CalledOffMoves {
  readonly #clock: Clock;
  readonly #endOf: (name: GuestName) => Promise<unknown>;
  readonly #moves = new Map<string, CalledOffMove>();

  /** `endOf` is called when the grace of a guest's move is over. It finds the guest and calls `end`. */
  constructor(clock: Clock, endOf: (name: GuestName) => Promise<unknown>) {
    this.#clock = clock;
    this.#endOf = endOf;
  }

  /** Ends the guest's move later, unless its forced form takes it up before. */
  add(name: GuestName, toAttemptId: string): void {
    const timer = this.#clock.setTimer(FORCE_GRACE_MS, () => {
      // The guest's next order tries again, and fails if this cannot be done.
      this.#endOf(name).catch(() => undefined);
    });
    this.#moves.set(keyOf(name), { toAttemptId, timer, ending: null });
  }

  /** Continues the guest's move to this attempt. False if there is none, or it is being ended already. */
  takeUp(name: GuestName, toAttemptId: string): boolean {
    const move = this.#moves.get(keyOf(name));
    if (move?.toAttemptId !== toAttemptId || move.ending !== null) return false;
    this.forget(name);
    return true;
  }

  /** Leaves the guest's move to its own end. */
  forget(name: GuestName): void {
    this.#moves.get(keyOf(name))?.timer.cancel();
    this.#moves.delete(keyOf(name));
  }

  /** Ends the guest's move now. Does nothing if there is none. Rejects if it cannot be ended; then the next call tries again. */
  async end(name: GuestName, guest: QemuGuest): Promise<void> {
    const move = this.#moves.get(keyOf(name));
    if (move === undefined) return;
    move.timer.cancel();
    move.ending ??= callOffHandOver(guest).finally(() => {
      move.ending = null;
    });
    await move.ending;
    this.#moves.delete(keyOf(name));
  }

  /** Cancels all timers. The moves are left as they are. */
  close(): void {
    for (const { timer } of this.#moves.values()) timer.cancel();
    this.#moves.clear();
  }
}

const keyOf = ({ host, attemptId }: GuestName): string => `${host} ${attemptId}`;
