import type { AgentStream } from "../../core/agent/link.ts";
import type { HostSighting } from "../../core/stores/cell/cell-store.ts";
import type { Tenure } from "../../core/tasks/tenure.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorStore } from "./ports.ts";
import { SharedStep } from "./shared-step.ts";
import type { StepCommitter } from "./step-committer.ts";

/** How long a conductor's sweep ignores a task that it released to the other conductors. */
const REST_MS = 10_000;
/** How long after the last release the count of a task's releases is remembered. */
const REMEMBER_MS = 300_000;
/** This conductor's own sighting of a host may still be written this long after the connection was lost. */
const LATE_SIGHTING_MS = 200;

/**
 * The outcome for a task whose host is not connected to this conductor. `released`: another conductor has seen the host's agent, and the
 * task is free for it. `down`: the host is down or unknown. `fenced`: an operator has forced the host down. `up`: the host's row says up,
 * but no conductor could take the task.
 */
export type Unreached = "released" | "down" | "fenced" | "up";

/** `released`: another conductor has seen the host's agent lately, and got the task. `seen`: the same, but no conductor could take the task. `unseen`: none has seen it. */
export type SeenElsewhere = "released" | "seen" | "unseen";

interface ReleasedTask {
  readonly times: number;
  readonly atMs: number;
  readonly restMs: number;
}

/**
 * Releases tasks to other conductors. A host that is not connected here need not be down: the agent's list may lack this conductor, or
 * one link may be cut. Its tasks go to the other conductors, and this conductor's sweep ignores them for a while.
 */
export class TaskReleaser {
  readonly #clock: Clock;
  readonly #commits: StepCommitter;
  readonly #events: ConductorEvents;
  readonly #streamOf: (host: string) => AgentStream | null;
  readonly #unconnectedMs: (host: string) => number | null;
  readonly #sightings: SharedStep<string, HostSighting | null>;
  readonly #release: SharedStep<Tenure, boolean>;
  /** Releases by task, the latest last. */
  readonly #done = new Map<string, ReleasedTask>();

  constructor(options: {
    readonly store: Pick<ConductorStore, "sightings" | "releaseTasks">;
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
    this.#release = new SharedStep((tenures) => store.releaseTasks(conductorId, tenures));
  }

  /** Releases the task if another conductor sees the host, at most `timesMax` times. Rejects when the conductor stops. */
  async tryRelease(tenure: Tenure, host: string, timesMax: number): Promise<Unreached> {
    const sighting = await this.#commits.answered("sightings", this.#sightings, host);
    if (sighting?.forcedDown) return "fenced";
    if (sighting === null || !sighting.up) return "down";
    const lostMs = this.#unconnectedMs(host);
    // No conductor has seen the host since it was lost here. Its row just does not say down yet.
    if (lostMs !== null && sighting.seenAgoMs > lostMs - LATE_SIGHTING_MS) return "up";
    return (await this.#releaseFor(tenure, host, timesMax)) ? "released" : "up";
  }

  /**
   * Releases a task to another conductor that has seen the agent of a host lately, even if the host is down or fenced. Rejects when the conductor stops.
   */
  async tryReleaseSeen(
    tenure: Tenure,
    host: string,
    { withinMs, timesMax }: { readonly withinMs: number; readonly timesMax: number },
  ): Promise<SeenElsewhere> {
    const sighting = await this.#commits.answered("sightings", this.#sightings, host);
    if (sighting === null || sighting.seenAgoMs > withinMs || this.#streamOf(host) !== null) return "unseen";
    const lostMs = this.#unconnectedMs(host);
    if (lostMs !== null && sighting.seenAgoMs > lostMs - LATE_SIGHTING_MS) return "unseen";
    return (await this.#releaseFor(tenure, host, timesMax)) ? "released" : "seen";
  }

  /**
   * Releases the task to any other live conductor. Returns false when there is none or this conductor no longer owns the task. Rejects when
   * the conductor stops.
   */
  async pass(tenure: Tenure, restMs: number): Promise<boolean> {
    if (!(await this.#commits.answered("hand-over", this.#release, tenure))) return false;
    const times = this.#done.get(tenure.taskId)?.times ?? 0;
    this.#done.delete(tenure.taskId);
    this.#done.set(tenure.taskId, { times, atMs: this.#clock.monotonic(), restMs });
    return true;
  }

  async #releaseFor(tenure: Tenure, host: string, timesMax: number): Promise<boolean> {
    const times = (this.#done.get(tenure.taskId)?.times ?? 0) + 1;
    if (times > timesMax || this.#streamOf(host) !== null) return false;
    if (!(await this.#commits.answered("hand-over", this.#release, tenure))) return false;
    this.#done.delete(tenure.taskId);
    this.#done.set(tenure.taskId, { times, atMs: this.#clock.monotonic(), restMs: REST_MS });
    this.#events.taskReleased(tenure.taskId, tenure.serverUuid, host);
    return true;
  }

  /** Tasks that were released a short time ago. */
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
