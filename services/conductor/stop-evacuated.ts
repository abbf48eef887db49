import type { TaskClaim } from "../../core/cell/task-claim.ts";
import type { PlaceOf } from "../../core/tasks/operation-facts.ts";
import { type ConductorMessage, GuestState, type OrderReport } from "../../proto/gen/berth/agent.ts";
import type { RunPorts } from "./task-run.ts";

/** An agent answers within its driver's deadline, which is shorter. */
const ANSWER_MS = 90_000;
/** Between two looks at whether the agent is still connected. */
const LOOK_MS = 1_000;
const TRIES_MAX = 5;
const RETRY_MS = 500;
/** A task goes at most so often to the conductors that see the source's agent. */
const HAND_OVERS_MAX = 3;

/**
 * How an evacuation makes sure that the guest at its source does not run: `stands` - it does not, or the operator's fence is the only word
 * on it; `runs` - its host says that it runs and cannot be stopped; `handed-over` - another conductor has the host's agent connected and
 * gets the task.
 */
export type SourceStop =
  | { readonly kind: "stands" }
  | { readonly kind: "runs"; readonly reason: string }
  | { readonly kind: "handed-over" };

const STANDS: SourceStop = { kind: "stands" };
const LOST = "the agent was lost";

/**
 * Stops the guest that an evacuation leaves behind, where the host's agent is connected although an operator has forced the host down. The
 * guest is stopped and kept: until the destination has said that it runs, it may be the only copy of the server (law 6).
 */
export class EvacuatedSource {
  readonly #source: PlaceOf;
  readonly #ports: RunPorts;
  #waiting: { readonly orderId: string; readonly answer: (failed: string) => void } | null = null;

  constructor(source: PlaceOf, ports: RunPorts) {
    this.#source = source;
    this.#ports = ports;
  }

  /** An answer of the source's host. True: it was to this order. */
  ordered(report: OrderReport): boolean {
    const { host, attemptId } = this.#source;
    if (report.host !== host || report.attemptId !== attemptId || report.orderId !== this.#waiting?.orderId)
      return false;
    this.#waiting.answer(report.failed);
    return true;
  }

  /** Repeatable: a guest that stands is told to stop once more. Rejects when the conductor stops. */
  async stop(claim: TaskClaim, order: { readonly orderId: string; readonly revision: number }): Promise<SourceStop> {
    const { host, attemptId } = this.#source;
    const value = { host, serverUuid: claim.serverUuid, attemptId, verb: "stop", ...order };
    for (let tries = 1; ; tries += 1) {
      if (this.#ports.streamOf(host) === null) return this.#elsewhere(claim);
      const failed = await this.#ask({ body: { $case: "power", value } }, order.orderId);
      if (failed === "" || (failed !== LOST && !(await this.#mayRun()))) return STANDS;
      if (tries >= TRIES_MAX && failed !== LOST) return { kind: "runs", reason: describeRunning(host, failed) };
      await this.#pause(RETRY_MS * 2 ** Math.min(tries - 1, TRIES_MAX));
    }
  }

  /** A conductor that has the agent connected stops the guest. Without one there is nobody to ask: the fence is believed. */
  async #elsewhere(claim: TaskClaim): Promise<SourceStop> {
    const { handOvers, settings } = this.#ports;
    const seen = { withinMs: settings.unseenMs, timesMax: HAND_OVERS_MAX };
    return (await handOvers.tryHandOverSeen(claim, this.#source.host, seen)) ? { kind: "handed-over" } : STANDS;
  }

  /** Why it failed; "": the guest stands, or the agent stays silent, for which there is the fence. `LOST`: the agent has left. */
  async #ask(message: ConductorMessage, orderId: string): Promise<string> {
    const { host } = this.#source;
    const { promise, resolve } = Promise.withResolvers<string>();
    this.#waiting = { orderId, answer: resolve };
    const stream = this.#ports.streamOf(host);
    stream?.send(message);
    try {
      for (let waitedMs = 0; waitedMs < ANSWER_MS; waitedMs += LOOK_MS) {
        const answer = await Promise.race([promise, this.#pause(LOOK_MS)]);
        if (answer !== undefined) return answer;
        if (this.#ports.streamOf(host) !== stream) return LOST;
      }
      return "";
    } finally {
      this.#waiting = null;
    }
  }

  #pause(forMs: number): Promise<undefined> {
    return new Promise((resolve) => this.#ports.clock.setTimer(forMs, () => resolve(undefined)));
  }

  /** By the host's own list: a guest that is gone, or stands, cannot be stopped either. A host that gives no list is silent. */
  async #mayRun(): Promise<boolean> {
    const { host, attemptId } = this.#source;
    const guests = await this.#ports.guestsOn(host);
    const guest = guests?.find((one) => one.attemptId === attemptId);
    return guest?.state === GuestState.GUEST_STATE_RUNNING || guest?.state === GuestState.GUEST_STATE_PAUSED;
  }
}

const describeRunning = (host: string, failed: string): string =>
  `${host} was forced down, but its agent says that the server runs there and cannot be stopped: ${failed}`;
