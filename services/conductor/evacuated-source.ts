import type { PlaceOf } from "../../core/tasks/operation-facts.ts";
import type { Tenure } from "../../core/tasks/tenure.ts";
import { type ConductorMessage, GuestState, type OrderReport } from "../../proto/gen/berth/agent.ts";
import { NO_SUBJECT } from "./operation-orders.ts";
import type { RunPorts } from "./task-run.ts";

/** Longer than any driver's deadline, within which agents answer. */
const ANSWER_MS = 90_000;
/** Pause between two checks whether the agent is still connected. */
const LOOK_MS = 1_000;
const TRIES_MAX = 5;
const RETRY_MS = 500;
/** How often a task is released at most to conductors that see the source's agent. */
const RELEASES_MAX = 3;

/**
 * The outcome of stopping the guest at the source of an evacuation. `stands`: the guest does not run, or only the operator's fence says so.
 * `runs`: the host reports that the guest runs and cannot be stopped. `released`: another conductor has the host's agent connected and
 * gets the task. `busy`: an earlier call has not ended, because the host has come back meanwhile.
 */
export type SourceStop =
  | { readonly kind: "stands" }
  | { readonly kind: "runs"; readonly reason: string }
  | { readonly kind: "released" }
  | { readonly kind: "busy" };

interface SourceOrder {
  readonly orderId: string;
  readonly revision: number;
}

const STANDS: SourceStop = { kind: "stands" };
const LOST = "the agent was lost";

/**
 * Stops the guest that an evacuation leaves behind, when the host's agent is connected although an operator has forced the host down. The
 * guest is stopped and kept, because it may be the server's only copy until the destination reports that it runs (law 6).
 */
export class EvacuatedSource {
  readonly #source: PlaceOf | null;
  readonly #ports: RunPorts;
  #waiting: { readonly orderId: string; readonly answer: (failed: string) => void } | null = null;

  #isStopping = false;

  /** `source` is null for a server that had no guest. */
  constructor(source: PlaceOf | null, ports: RunPorts) {
    this.#source = source;
    this.#ports = ports;
  }

  /** Handles an answer of the source's host. Returns true when the answer belongs to this order. */
  ordered(report: OrderReport): boolean {
    const { host, attemptId } = this.#source ?? {};
    if (report.host !== host || report.attemptId !== attemptId || report.orderId !== this.#waiting?.orderId)
      return false;
    this.#waiting.answer(report.failed);
    return true;
  }

  /**
   * Stops the guest before the destination may start, because a host that was forced down may still be connected: it was not really fenced, or it is back. So the server never
   * runs twice. The guest is kept, so that a copy is left if no destination starts. Repeatable, because a stopped guest may be told to stop again. Rejects when the conductor stops. */
  async stop(tenure: Tenure, orderId: string, revision: number): Promise<SourceStop> {
    if (this.#source === null) return STANDS;
    if (this.#isStopping) return { kind: "busy" };
    this.#isStopping = true;
    try {
      return await this.#stop(this.#source, tenure, { orderId, revision });
    } finally {
      this.#isStopping = false;
    }
  }

  async #stop({ host, attemptId }: PlaceOf, tenure: Tenure, order: SourceOrder): Promise<SourceStop> {
    const value = {
      host,
      serverUuid: tenure.serverUuid,
      attemptId,
      verb: "stop",
      ...NO_SUBJECT,
      ...order,
    };
    for (let tries = 1; ; tries += 1) {
      if (this.#ports.streamOf(host) === null) return this.#elsewhere(host, tenure);
      const failed = await this.#ask(host, { body: { $case: "power", value } }, order.orderId);
      if (failed === "" || (failed !== LOST && !(await this.#mayRun(host, attemptId)))) return STANDS;
      if (tries >= TRIES_MAX && failed !== LOST) return { kind: "runs", reason: describeRunning(host, failed) };
      await this.#pause(RETRY_MS * 2 ** Math.min(tries - 1, TRIES_MAX));
    }
  }

  /**
   * Hands the task to a conductor that has the agent connected, which then stops the guest. If there is none, the operator's fence is
   * trusted.
   */
  async #elsewhere(host: string, tenure: Tenure): Promise<SourceStop> {
    const { releaser, settings } = this.#ports;
    const seen = { withinMs: settings.unseenMs, timesMax: RELEASES_MAX };
    return (await releaser.tryReleaseSeen(tenure, host, seen)) === "released" ? { kind: "released" } : STANDS;
  }

  /**
   * Resolves with the reason of a failure. "" means that the guest has stopped, or that the agent stayed silent, in which case the fence is
   * trusted. `LOST` means that the agent disconnected.
   */
  async #ask(host: string, message: ConductorMessage, orderId: string): Promise<string> {
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

  /**
   * Whether the guest may run according to the host's own list. A guest that is gone or stopped need not be stopped. A host that gives no
   * list counts as silent, and its guest as stopped.
   */
  async #mayRun(host: string, attemptId: string): Promise<boolean> {
    const guests = await this.#ports.guestsOn(host);
    const guest = guests?.find((one) => one.attemptId === attemptId);
    return guest !== undefined && MAY_RUN.includes(guest.state);
  }
}

const MAY_RUN: readonly GuestState[] = [
  GuestState.GUEST_STATE_RUNNING,
  GuestState.GUEST_STATE_PAUSED,
  GuestState.GUEST_STATE_RESCUED,
];

const describeRunning = (host: string, failed: string): string =>
  `${host} was forced down, but its agent reports that the server runs there and cannot be stopped: ${failed}`;
