import type { Clock } from "../../../runtime/clock.ts";

/**
 * Slows the guessing of passwords. The answer to a wrong password is held back for `holdMs`, and while `heldMax` answers of one user are
 * held back, no further password of that user is looked at. A right password is answered at once.
 */
export class GuessLimiter {
  readonly #clock: Pick<Clock, "setTimer">;
  readonly #settings: { readonly holdMs: number; readonly heldMax: number };
  readonly #held = new Map<string, number>();

  constructor(
    deps: { readonly clock: Pick<Clock, "setTimer"> },
    settings: { readonly holdMs: number; readonly heldMax: number },
  ) {
    this.#clock = deps.clock;
    this.#settings = settings;
  }

  /** Whether a password of this user is looked at now. All unknown names count as one user. */
  mayTry(userId: string | null): boolean {
    return (this.#held.get(userId ?? "") ?? 0) < this.#settings.heldMax;
  }

  /** Resolves when the answer to a wrong password may be sent. */
  async hold(userId: string | null): Promise<void> {
    const key = userId ?? "";
    this.#held.set(key, (this.#held.get(key) ?? 0) + 1);
    await new Promise<void>((resolve) => {
      this.#clock.setTimer(this.#settings.holdMs, resolve);
    });
    const left = (this.#held.get(key) ?? 1) - 1;
    if (left === 0) this.#held.delete(key);
    else this.#held.set(key, left);
  }
}
