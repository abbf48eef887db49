import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { Type } from "typebox";
import { guestCpuFlags } from "../../../adapters/qemu/guest-cpu-flags.ts";
import type { Clock, Timer } from "../../../runtime/clock.ts";
import type { Logger } from "../../../runtime/logger.ts";
import { firstFault } from "../first-fault.ts";

const RETRY_MS = 30_000;
const RETRY_MS_MAX = 1_800_000;

const KeptFlags = Type.Object({
  /** The program and the settings that the flags belong to. */
  of: Type.String({ maxLength: 10_000 }),
  flags: Type.Array(Type.String({ maxLength: 100 }), { maxItems: 2_000 }),
});

/**
 * The flags of guests' CPUs. QEMU tells them, but it may take half a minute, since the accelerator may have to be tried first. So they are kept
 * in a file, from which the next agent knows them at once: a restart must not take the traits of the flags away from the hosts for a while.
 * While QEMU does not tell them, the last known flags count, and QEMU is asked again, less and less often.
 */
export class KnownCpuFlags {
  readonly #path: string;
  readonly #of: string;
  readonly #question: () => Promise<Parameters<typeof guestCpuFlags>[0]>;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #onLearnt: (flags: string[]) => void;
  readonly #ended = new AbortController();
  #timer: Timer | null = null;

  constructor(options: {
    readonly path: string;
    /** Everything that the flags depend on, known without asking. */
    readonly of: readonly (string | number | null)[];
    /** The accelerator may have to be found first. */
    readonly question: () => Promise<Parameters<typeof guestCpuFlags>[0]>;
    readonly clock: Clock;
    readonly logger: Logger;
    readonly onLearnt: (flags: string[]) => void;
  }) {
    this.#path = options.path;
    this.#of = JSON.stringify(options.of);
    this.#question = options.question;
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.#onLearnt = options.onLearnt;
  }

  /** The flags that an earlier process of the agent has learnt from the same program with the same settings, or null. */
  kept(): string[] | null {
    try {
      const kept: unknown = JSON.parse(readFileSync(this.#path, "utf8"));
      if (firstFault(KeptFlags, kept) !== null) return null;
      const { of, flags } = kept as { of: string; flags: string[] };
      return of === this.#of ? flags : null;
    } catch {
      // They are learnt anew.
      return null;
    }
  }

  /** Asks QEMU until it answers. */
  learn(afterMs = RETRY_MS): void {
    this.#ask().catch((error: unknown) => {
      if (this.#ended.signal.aborted) return;
      this.#logger.warn(
        { err: error, againInMs: afterMs },
        "QEMU does not say which CPU flags guests have, so hosts report those that were known before, and QEMU is asked again",
      );
      this.#timer = this.#clock.setTimer(afterMs, () => this.learn(Math.min(2 * afterMs, RETRY_MS_MAX)));
    });
  }

  async #ask(): Promise<void> {
    const question = await this.#question();
    const flags = [...(await guestCpuFlags(question, this.#ended.signal))];
    if (this.#ended.signal.aborted) return;
    this.#keep(flags);
    this.#onLearnt(flags);
  }

  #keep(flags: readonly string[]): void {
    try {
      mkdirSync(dirname(this.#path), { recursive: true });
      writeFileSync(`${this.#path}.new`, JSON.stringify({ of: this.#of, flags }), { mode: 0o600 });
      renameSync(`${this.#path}.new`, this.#path);
    } catch (error) {
      this.#logger.warn(
        { err: error, path: this.#path },
        "the CPU flags of guests could not be kept for the next agent",
      );
    }
  }

  /** Asks no more. Repeatable. */
  close(): void {
    this.#ended.abort();
    this.#timer?.cancel();
  }
}
