import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import type { Clock, Timer } from "../../../runtime/clock.ts";
import type { GuestName } from "../journal.ts";
import { callOffHandOver } from "./hand-over.ts";

/** How long a cancelled live move continues, up to its switch-over, since the next order may be its forced form. */
const FORCE_GRACE_MS = 500;
/** After how long a move that could not be ended is ended again. The time doubles with each attempt, up to the maximum. */
const AGAIN_MS = 5_000;
const AGAIN_MS_MAX = 30_000;

interface CalledOffMove {
  readonly toAttemptId: string;
  /** Ends the move when it fires. Null while an attempt to end it is under way. */
  timer: Timer | null;
  /** After how long the move is ended again if the next attempt fails. */
  againMs: number;
  /** Settles when the transfer has ended. Null while it continues, and after an attempt to end it failed. */
  ending: Promise<void> | null;
  /** Whether it is whole. After an attempt to end it, the copying of the disks may have ended, so that the destination would get the memory without the guest's last writes. */
  isWhole: boolean;
}

/**
 * Live moves of guests that were cancelled and have not ended yet. QEMU may have halted a guest for its move's switch-over, and then the guest stands still until
 * the move has ended. So a move that cannot be ended is tried again until it has, also if the guest gets no further order.
 */
export class CalledOffMoves {
  readonly #clock: Clock;
  readonly #endOf: (name: GuestName) => Promise<unknown>;
  readonly #moves = new Map<string, CalledOffMove>();

  /** `endOf` is called when the grace of a guest's move is over. It finds the guest and calls `end`. */
  constructor(clock: Clock, endOf: (name: GuestName) => Promise<unknown>) {
    this.#clock = clock;
    this.#endOf = endOf;
  }

  /** Ends the guest's move later, unless its forced form takes it up before. That it may only if the move `isWhole`: nobody has tried to end it yet. */
  add(name: GuestName, toAttemptId: string, { isWhole }: { readonly isWhole: boolean }): void {
    this.forget(name);
    const move: CalledOffMove = { toAttemptId, timer: null, againMs: AGAIN_MS, ending: null, isWhole };
    this.#moves.set(keyOf(name), move);
    this.#endIn(FORCE_GRACE_MS, name, move);
  }

  /** Continues the guest's move to this attempt. False if there is none, or somebody has begun to end it. */
  takeUp(name: GuestName, toAttemptId: string): boolean {
    const move = this.#moves.get(keyOf(name));
    if (move?.toAttemptId !== toAttemptId || !move.isWhole) return false;
    this.forget(name);
    return true;
  }

  /** Leaves the guest's move to its own end. */
  forget(name: GuestName): void {
    this.#moves.get(keyOf(name))?.timer?.cancel();
    this.#moves.delete(keyOf(name));
  }

  /** Ends the guest's move now. Does nothing if there is none. Rejects if it cannot be ended; then the next call tries again, or a timer does. */
  async end(name: GuestName, guest: QemuGuest): Promise<void> {
    const move = this.#moves.get(keyOf(name));
    if (move === undefined) return;
    move.timer?.cancel();
    move.timer = null;
    move.isWhole = false;
    move.ending ??= this.#callOff(name, guest, move);
    await move.ending;
  }

  async #callOff(name: GuestName, guest: QemuGuest, move: CalledOffMove): Promise<void> {
    try {
      await callOffHandOver(guest);
      if (this.#moves.get(keyOf(name)) === move) this.#moves.delete(keyOf(name));
    } catch (error) {
      this.#endAgain(name, move);
      throw error;
    } finally {
      move.ending = null;
    }
  }

  #endAgain(name: GuestName, move: CalledOffMove): void {
    // It may have been taken up or forgotten meanwhile, and an attempt that another caller made may have set the timer.
    if (this.#moves.get(keyOf(name)) !== move || move.timer !== null) return;
    this.#endIn(move.againMs, name, move);
    move.againMs = Math.min(2 * move.againMs, AGAIN_MS_MAX);
  }

  #endIn(delayMs: number, name: GuestName, move: CalledOffMove): void {
    move.timer = this.#clock.setTimer(delayMs, () => {
      move.timer = null;
      this.#endOf(name).catch(() => this.#endAgain(name, move));
    });
  }

  /** Cancels all timers. The moves are left as they are. */
  close(): void {
    for (const { timer } of this.#moves.values()) timer?.cancel();
    this.#moves.clear();
  }
}

const keyOf = ({ host, attemptId }: GuestName): string => `${host} ${attemptId}`;
