import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { guestCpuOffers } from "../../../adapters/qemu/guest-cpu-offers.ts";
import { type CpuOffer, flagsOfOffers } from "../../../core/pinning/choose-cpu-model.ts";
import type { Clock, Timer } from "../../../runtime/clock.ts";
import { firstFault } from "../../../runtime/first-fault.ts";
import type { Logger } from "../../../runtime/logger.ts";
import { PlainType } from "../../../runtime/plain-type.ts";

const RETRY_MS = 30_000;
const RETRY_MS_MAX = 1_800_000;

const KeptFlags = PlainType.Object({
  /** The program and the settings that the flags belong to. */
  of: PlainType.String({ maxLength: 10_000 }),
  flags: PlainType.Array(PlainType.String({ maxLength: 100 }), { maxItems: 2_000 }),
});

/**
 * What guests have with each CPU model of the host: the models' flags. QEMU tells them, but it may take half a minute, since the accelerator may have to be tried first. So they are kept
 * in a file, from which the next agent knows them at once: a restart must not take the traits of the flags away from the hosts for a while.
 * While QEMU does not tell them, the last known flags count, and QEMU is asked again, less and less often.
 */
export class KnownCpuOffers {
  readonly #path: string | null;
  readonly #of: string;
  readonly #question: () => Promise<Parameters<typeof guestCpuOffers>[0]>;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #ended = new AbortController();
  #timer: Timer | null = null;
  #asked: Promise<readonly CpuOffer[]> | null = null;

  constructor(options: {
    /** The file in which the flags are kept. Null where nobody needs them again. */
    readonly path: string | null;
    /** Everything that the flags depend on, known without asking. */
    readonly of: readonly (string | number | null)[];
    /** The accelerator may have to be found first. */
    readonly question: () => Promise<Parameters<typeof guestCpuOffers>[0]>;
    readonly clock: Clock;
    readonly logger: Logger;
  }) {
    this.#path = options.path;
    this.#of = JSON.stringify(options.of);
    this.#question = options.question;
    this.#clock = options.clock;
    this.#logger = options.logger;
  }

  /** The flags that an earlier process of the agent has learnt from the same program with the same settings, or null. */
  kept(): string[] | null {
    if (this.#path === null) return null;
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

  /** Asks QEMU until it answers, and then calls `onLearnt` with the flags of all models that guests can have. */
  learn(onLearnt: (flags: string[]) => void, afterMs = RETRY_MS): void {
    this.#ask(onLearnt).catch((error: unknown) => {
      if (this.#ended.signal.aborted) return;
      this.#logger.warn(
        { err: error, againInMs: afterMs },
        "QEMU does not say which CPU flags guests have, so hosts report those that were known before, and QEMU is asked again",
      );
      this.#timer = this.#clock.setTimer(afterMs, () => this.learn(onLearnt, Math.min(2 * afterMs, RETRY_MS_MAX)));
    });
  }

  /** What QEMU has told, or tells now. Rejects with its reason if it does not. */
  offers(): Promise<readonly CpuOffer[]> {
    this.#asked ??= this.#question()
      .then((question) => guestCpuOffers(question, this.#ended.signal))
      .catch((error: unknown) => {
        this.#asked = null;
        throw error;
      });
    return this.#asked;
  }

  async #ask(onLearnt: (flags: string[]) => void): Promise<void> {
    const offers = await this.offers();
    if (this.#ended.signal.aborted) return;
    this.#warnOf(offers);
    const flags = flagsOfOffers(offers);
    this.#keep(flags);
    onLearnt(flags);
  }

  #warnOf(offers: readonly CpuOffer[]): void {
    for (const { cpuModel, missing } of offers)
      if (missing.length > 0)
        this.#logger.warn(
          { cpuModel, missing },
          "this host cannot give guests a CPU model of the settings, since it lacks some of the model's flags; if there are other models, servers get those: remove the model, or switch the flags off by --cpu-model-extra-flags",
        );
  }

  #keep(flags: readonly string[]): void {
    if (this.#path === null) return;
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
