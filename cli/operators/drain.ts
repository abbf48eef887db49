import { setTimeout as delay } from "node:timers/promises";
import { DrainApi, type DrainSubject } from "./drain-api.ts";
import type { DrainTally } from "./drain-progress.ts";
import { type DrainKnowledge, type DrainStep, nextDrainStep } from "./drain-step.ts";
import { type ApiAccess, isUnclear, OperatorsApiError } from "./operators-client.ts";

/** Maximum number of servers that are moved at a time. */
const ON_THEIR_WAY_MAX = 32;
/** Minimum pause between two looks at a server, in milliseconds. */
const PAUSE_MS_MIN = 100;
/** Number of actions without a clear answer after which the drain gives up. */
const UNCLEAR_MAX = 60;
/** Number of times that servers which came to the host meanwhile are moved away, too. */
const ROUNDS_MAX = 5;

const LIMITS = {
  /** A move that takes longer than this counts as failed in the report, but continues. */
  moveMsMax: 30 * 60_000,
  /** Maximum pause between two looks at a server, and the pause between two tries of a call that was not answered. */
  pauseMsMax: 1_000,
  /** The last look at the host comes at least this long after the first. Until then, schedulers may choose it before they see it disabled. */
  lastLookMs: 1_000,
};

export interface DrainReport {
  readonly moved: number;
  readonly stayed: readonly StayedServer[];
  /** Why moves that wait for a confirmation could not be listed, or null when they were listed. */
  readonly unlisted: string | null;
  readonly seconds: number;
}

export interface StayedServer {
  readonly id: string;
  readonly name: string;
  readonly why: string;
}

/** Moves all servers away from one host through the Compute API, several at a time, and confirms the moves that need it. */
export class Drain {
  readonly tally: DrainTally = { total: 0, moved: 0, stayed: 0 };
  readonly #api: DrainApi;
  readonly #host: string;
  readonly #live: boolean;
  readonly #limits: typeof LIMITS;
  readonly #stayed = new Map<string, StayedServer>();
  #hasFailed = false;

  constructor(
    access: ApiAccess,
    options: { readonly host: string; readonly live: boolean; readonly limits?: Partial<typeof LIMITS> },
  ) {
    this.#host = options.host;
    this.#live = options.live;
    this.#limits = { ...LIMITS, ...options.limits };
    this.#api = new DrainApi(access, options.host, this.#limits.pauseMsMax);
  }

  /** Rejects when the api does not answer for a minute. Moves that were begun continue. */
  async run(): Promise<DrainReport> {
    const startedMs = performance.now();
    for (let rounds = 0; ; ) {
      const found = (await this.#api.subjects()).filter(({ id }) => !this.#stayed.has(id));
      const waitMs = startedMs + this.#limits.lastLookMs - performance.now();
      if (found.length > 0 && rounds < ROUNDS_MAX) {
        rounds += 1;
        await this.#moveAll(found);
      } else if (found.length === 0 && waitMs > 0) {
        await delay(waitMs);
      } else {
        this.tally.total += found.length;
        for (const late of found) this.#keep(late, "it came to the host while the host was drained");
        break;
      }
    }
    const seconds = (performance.now() - startedMs) / 1000;
    const { unlisted } = this.#api;
    return { moved: this.tally.moved, stayed: [...this.#stayed.values()], unlisted, seconds };
  }

  async #moveAll(subjects: readonly DrainSubject[]): Promise<void> {
    this.tally.total += subjects.length;
    const queue = subjects.values();
    const work = async () => {
      for (const subject of queue) {
        if (this.#hasFailed) return;
        await this.#moveAway(subject);
      }
    };
    try {
      await Promise.all(Array.from({ length: ON_THEIR_WAY_MAX }, work));
    } catch (error) {
      this.#hasFailed = true;
      throw error;
    }
  }

  async #moveAway(subject: DrainSubject): Promise<void> {
    const end = await this.#untilEnd(subject).catch(endOfRefusal);
    if (end.kind === "left") this.tally.moved += 1;
    else if (end.kind === "stayed") this.#keep(subject, await this.#describe(subject, end));
    else this.tally.total -= 1;
  }

  /** Looks at the server and does the next step, until there is none. */
  async #untilEnd({ id, foundAs }: DrainSubject): Promise<Exclude<DrainStep, { readonly kind: "wait" | "act" }>> {
    const deadline = performance.now() + this.#limits.moveMsMax;
    let known: DrainKnowledge = { host: this.#host, live: this.#live, foundAs, accepted: "none", refusal: null };
    let pauseMs = PAUSE_MS_MIN;
    for (let unclear = 0; ; ) {
      const server = await this.#api.server(id);
      const step = nextDrainStep(server, known);
      if (step.kind === "act") {
        const answer = await this.#api.act(id, step.body, { isLastTry: unclear === UNCLEAR_MAX });
        if (answer.kind === "accepted") known = { ...known, accepted: step.as };
        else if (answer.kind === "refused") known = { ...known, refusal: answer.why };
        else unclear += 1;
        pauseMs = answer.kind === "unclear" ? this.#limits.pauseMsMax : PAUSE_MS_MIN;
        if (answer.kind === "unclear") await delay(pauseMs);
      } else if (step.kind !== "wait") {
        return step;
      } else if (performance.now() > deadline) {
        const task = server?.taskState ?? server?.status;
        return { kind: "stayed", why: `it is still in the state ${task}, which continues`, hasEvents: true };
      } else {
        await delay(pauseMs);
        pauseMs = Math.min(this.#limits.pauseMsMax, pauseMs * 1.5);
      }
    }
  }

  async #describe({ id }: DrainSubject, end: DrainStep & { readonly kind: "stayed" }): Promise<string> {
    const events = end.hasEvents ? await this.#api.reasonsOfLastAction(id) : "";
    return events === "" ? end.why : `${end.why}: ${events}`;
  }

  #keep({ id, name }: DrainSubject, why: string): void {
    this.tally.stayed += 1;
    this.#stayed.set(id, { id, name, why });
  }
}

/** A refused read of one server does not end the drain of the others. An api that does not answer does. */
function endOfRefusal(error: unknown): DrainStep & { readonly kind: "stayed" } {
  if (!(error instanceof OperatorsApiError) || isUnclear(error)) throw error;
  return { kind: "stayed", why: error.message, hasEvents: false };
}
