import type { AgentStream } from "../../core/agent/link.ts";
import type { HostSighting } from "../../core/stores/cell/cell-store.ts";
import type { TaskClaim } from "../../core/tasks/task-claim.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorStore } from "./ports.ts";
import { SharedStep } from "./shared-step.ts";
import type { StepCommitter } from "./step-committer.ts";

/** How long a conductor's sweep ignores a task that it handed over to the other conductors. */
const REST_MS = 10_000;
/** How long after the last hand-over the count of a task's hand-overs is remembered. */
const REMEMBER_MS = 300_000;
/** This conductor's own sighting of a host may still be written this long after the connection was lost. */
const LATE_SIGHTING_MS = 200;

/**
 * The outcome for a task whose host is not connected to this conductor. `handed-over`: another conductor has seen the host's agent, and the
 * task is free for it. `down`: the host is down or unknown. `fenced`: an operator has forced the host down. `up`: the host's row says up,
 * but no conductor could take the task.
 */
export type Unreached = "handed-over" | "down" | "fenced" | "up";

interface HandedOver {
  readonly times: number;
  readonly atMs: number;
  readonly restMs: number;
}

/**
 * Hands tasks over to other conductors. A host that is not connected here need not be down: the agent's list may lack this conductor, or
 * one link may be cut. Its tasks go to the other conductors, and this conductor's sweep ignores them for a while.
 */
export class HandOvers {
  readonly #clock: Clock;
  readonly #commits: StepCommitter;
  readonly #events: ConductorEvents;
  readonly #streamOf: (host: string) => AgentStream | null;
  readonly #unconnectedMs: (host: string) => number | null;
  readonly #sightings: SharedStep<string, HostSighting | null>;
  readonly #release: SharedStep<TaskClaim, boolean>;
  /** Hand-overs by task, the latest last. */
  readonly #done = new Map<string, HandedOver>();

  constructor(options: {
    readonly store: Pick<ConductorStore, "sightings" | "handOver">;
    readonly conductorId: string;
    readonly clock: Clock;
    readonly commits: StepCommitter;
    readonly events: ConductorEvents;
    readonly streamOf: (host: string) => AgentStream | null;
    /** Milliseconds since the host's connection was lost. Null when the host is connected here or never was. */
    readonly unconnectedMs: (host: string) => number | null;
  }) {
    const { store, conductorId } = options;
    this.#clock = options.clock;
    this.#commits = options.commits;
    this.#events = options.events;
    this.#streamOf = options.streamOf;
    this.#unconnectedMs = options.unconnectedMs;
    this.#sightings = new SharedStep(async (hosts) => {
      const found = new Map((await store.sightings(hosts)).map((sighting) => [sighting.name, sighting]));
      return hosts.map((host) => found.get(host) ?? null);
    });
    this.#release = new SharedStep((claims) => store.handOver(conductorId, claims));
  }

  /** Hands the task over if another conductor sees the host, at most `timesMax` times. Rejects when the conductor stops. */
  async tryHandOver(claim: TaskClaim, host: string, timesMax: number): Promise<Unreached> {
    const sighting = await this.#commits.answered("sightings", this.#sightings, host);
    if (sighting?.forcedDown) return "fenced";
    if (sighting === null || !sighting.up) return "down";
    const lostMs = this.#unconnectedMs(host);
    // No conductor has seen the host since it was lost here. Its row just does not say down yet.
    if (lostMs !== null && sighting.seenAgoMs > lostMs - LATE_SIGHTING_MS) return "up";
    return (await this.#handOver(claim, host, timesMax)) ? "handed-over" : "up";
  }

  /**
   * Hands over a task whose host must be asked even if it is down or fenced. Returns true if another conductor has seen the host's agent
   * lately and got the task. Rejects when the conductor stops.
   */
  async tryHandOverSeen(
    claim: TaskClaim,
    host: string,
    { withinMs, timesMax }: { readonly withinMs: number; readonly timesMax: number },
  ): Promise<boolean> {
    const sighting = await this.#commits.answered("sightings", this.#sightings, host);
    if (sighting === null || sighting.seenAgoMs > withinMs) return false;
    const lostMs = this.#unconnectedMs(host);
    if (lostMs !== null && sighting.seenAgoMs > lostMs - LATE_SIGHTING_MS) return false;
    return this.#handOver(claim, host, timesMax);
  }

  /**
   * Releases the task to any other live conductor. Returns false when there is none or this conductor no longer owns the task. Rejects when
   * the conductor stops.
   */
  async pass(claim: TaskClaim, restMs: number): Promise<boolean> {
    if (!(await this.#commits.answered("hand-over", this.#release, claim))) return false;
    const times = this.#done.get(claim.taskId)?.times ?? 0;
    this.#done.delete(claim.taskId);
    this.#done.set(claim.taskId, { times, atMs: this.#clock.monotonic(), restMs });
    return true;
  }

  async #handOver(claim: TaskClaim, host: string, timesMax: number): Promise<boolean> {
    const times = (this.#done.get(claim.taskId)?.times ?? 0) + 1;
    if (times > timesMax || this.#streamOf(host) !== null) return false;
    if (!(await this.#commits.answered("hand-over", this.#release, claim))) return false;
    this.#done.delete(claim.taskId);
    this.#done.set(claim.taskId, { times, atMs: this.#clock.monotonic(), restMs: REST_MS });
    this.#events.handedOver(claim.taskId, claim.serverUuid, host);
    return true;
  }

  /** Tasks that were handed over a short time ago. */
  resting(): readonly string[] {
    const nowMs = this.#clock.monotonic();
    const resting: string[] = [];
    for (const [taskId, { atMs, restMs }] of this.#done) {
      if (nowMs - atMs > REMEMBER_MS) this.#done.delete(taskId);
      else if (nowMs - atMs < restMs) resting.push(taskId);
    }
    return resting;
  }
}
