import type { GuestName } from "./journal.ts";

/** The turn was cancelled because a later order for the same guest replaced it. */
export class CalledOffError extends Error {
  override readonly name = "CalledOffError";
}

interface Turn {
  readonly isFinal: boolean;
  readonly cancel: AbortController;
  /** Resolves when the turn has ended. Never rejects. */
  readonly ended: Promise<void>;
}

/**
 * One queue for each guest, for everything that changes the guest. At most one piece of work runs on a guest at a time, in the order of the
 * calls. A turn ends only when the driver call has ended, so a turn never meets work of an earlier one in progress.
 */
export class GuestChains {
  /** The turns of each guest that have not ended, oldest first. */
  readonly #turns = new Map<string, Turn[]>();

  /**
   * Runs `work` once all earlier turns of the guest have ended, and settles as `work` does. With `callOff`, the earlier turns are no longer
   * wanted: their signals are raised with this reason, and those that have not begun reject with it. A turn with `isFinal` is never
   * cancelled.
   */
  enter<Value>(
    name: GuestName,
    work: (signal: AbortSignal) => Promise<Value>,
    { callOff = null, isFinal = false }: { readonly callOff?: string | null; readonly isFinal?: boolean } = {},
  ): Promise<Value> {
    const key = keyOf(name);
    const turns = this.#turns.get(key) ?? [];
    const before = turns.at(-1)?.ended ?? Promise.resolve();
    const unwanted = callOff === null ? [] : turns.filter((turn) => !turn.isFinal);
    for (const turn of unwanted) turn.cancel.abort(new CalledOffError(callOff ?? ""));
    const cancel = new AbortController();
    const result = before.then(() => {
      cancel.signal.throwIfAborted();
      return work(cancel.signal);
    });
    const leave = () => {
      turns.splice(turns.indexOf(turn), 1);
      if (turns.length === 0) this.#turns.delete(key);
    };
    const turn: Turn = { isFinal, cancel, ended: result.then(leave, leave) };
    turns.push(turn);
    this.#turns.set(key, turns);
    return result;
  }

  /** Whether any turn of the guest has not ended. */
  isBusy(name: GuestName): boolean {
    return this.#turns.has(keyOf(name));
  }
}

const keyOf = ({ host, attemptId }: GuestName): string => `${host} ${attemptId}`;
