import { NeighbourFault } from "../../core/stores/neighbour-fault.ts";
import type { Tenure } from "../../core/tasks/tenure.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Turns } from "../../runtime/turns.ts";
import type { ConductorStore } from "./ports.ts";

/**
 * `unwanted`: the work was given up before this was done. `final`: no other host could help. `isUnknown`: it may have been done nevertheless, or in part. `forbidsStart`: no
 * guest may be started, not even one that would otherwise be started without the neighbour.
 */
export type Undone =
  | {
      readonly kind: "failed";
      readonly reason: string;
      readonly final: boolean;
      readonly isUnknown?: true;
      readonly forbidsStart?: true;
    }
  | { readonly kind: "unwanted" };

/** What a caller of a neighbour tells about the work that needs it. */
export interface Need {
  readonly isWanted: () => boolean;
  /** Whether the neighbour is asked once only, because the work goes on without it. */
  readonly isUrgent?: boolean;
  /** What gives the right to write: a task, or the answer of the cell's database to another question. */
  readonly tenure: Tenure | (() => Promise<boolean>);
}

const RETRY_MS = 1_000;
/**
 * For how many servers a neighbour is called at a time, and for how many more whose need is urgent. Further calls would wait for a connection, as if the
 * neighbour were silent.
 */
const LANES = 16;

/**
 * Calls one of the cell's neighbours (Neutron, Cinder) for servers whose guest is about to run. While the neighbour does not answer, it is asked again
 * until the deadline, which counts from the first question.
 */
export class PatientCalls {
  readonly #store: Pick<ConductorStore, "holdsTask">;
  readonly #clock: Clock;
  readonly #deadlineMs: number;
  readonly #turns = new Turns<string>();
  #lane = 0;

  constructor(
    deps: { readonly store: Pick<ConductorStore, "holdsTask">; readonly clock: Clock },
    options: { readonly deadlineMs: number },
  ) {
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#deadlineMs = options.deadlineMs;
  }

  /**
   * `what` is the part of the reason that says what could not be done. `pause` resolves when the neighbour is to be asked again. The promise never rejects because of the
   * neighbour.
   */
  async call<Done>(
    what: string,
    need: Need,
    work: () => Promise<Done | Undone>,
    pause: () => Promise<void> = () => this.#pause(),
  ): Promise<Done | Undone> {
    const { isWanted, isUrgent = false } = need;
    this.#lane = (this.#lane + 1) % LANES;
    const lane = isUrgent ? `home ${this.#lane}` : `${this.#lane}`;
    let startedAtMs: number | null = null;
    const ask = async (): Promise<Done | Undone> => {
      startedAtMs ??= this.#clock.monotonic();
      return isWanted() ? await work() : UNWANTED;
    };
    for (;;) {
      try {
        return await this.#turns.take([lane], ask);
      } catch (error) {
        if (!(error instanceof NeighbourFault)) throw error;
        const isLate = this.#clock.monotonic() - (startedAtMs ?? 0) >= (isUrgent ? 0 : this.#deadlineMs);
        if (error.code !== "unreachable" || isLate) return failed(`${what}: ${error.message}`, true);
      }
      await pause();
      if (!isWanted()) return UNWANTED;
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.setTimer(RETRY_MS, resolve);
    });
  }

  /**
   * Whether this conductor still carries out the task, or may do without one. Asked before the writes for a port or a volume, so that a slow conductor
   * undoes nothing that another one has done.
   */
  async mayWrite({ isWanted, tenure }: Need): Promise<boolean> {
    const asking = typeof tenure === "function" ? tenure() : this.#store.holdsTask(tenure);
    const isHeld = await asking.catch((error: Error) => {
      throw new NeighbourFault(
        "unreachable",
        `the cell's database does not say who carries the task out: ${error.message}`,
      );
    });
    return isHeld && isWanted();
  }
}

export const UNWANTED: Undone = { kind: "unwanted" };
export const failed = (reason: string, final: boolean): Extract<Undone, { kind: "failed" }> => ({
  kind: "failed",
  reason,
  final,
});
/** The reason why nothing can be done about something in Cinder here. */
export const noCinder = (what: string): string =>
  `${what}, and the conductors of its cell cannot call Cinder: set BERTH_VOLUMES=cinder for them`;
