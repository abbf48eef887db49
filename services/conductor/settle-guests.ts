import type { AgentStream } from "../../core/agent/link.ts";
import type { Home } from "../../core/cell/cell-store.ts";
import { type FoundGuest, guestFate } from "../../core/tasks/guest-fate.ts";
import type { DestroyReport } from "../../proto/gen/berth/agent.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import type { StepCommitter } from "./commit-steps.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorStore } from "./ports.ts";
import { SharedStep } from "./shared-step.ts";

/** Agents answer within their driver's deadline, which is shorter. */
const DESTROY_ANSWER_MS = 90_000;

/**
 * Makes a guest what its server's row says: starts the one whose starter died, destroys the one that is not at home (law 4),
 * leaves the others alone.
 */
export class GuestSettler {
  readonly #commits: StepCommitter;
  readonly #clock: Clock;
  readonly #events: ConductorEvents;
  readonly #streamOf: (host: string) => AgentStream | null;
  readonly #homes: SharedStep<string, Home | null>;
  /** Who waits for the answer to a destroy, by guest. */
  readonly #destroys = new Map<
    string,
    { readonly host: string; readonly done: () => void; readonly promise: Promise<void> }
  >();

  constructor(options: {
    readonly store: Pick<ConductorStore, "homes">;
    readonly commits: StepCommitter;
    readonly clock: Clock;
    readonly events: ConductorEvents;
    readonly streamOf: (host: string) => AgentStream | null;
  }) {
    const { store } = options;
    this.#commits = options.commits;
    this.#clock = options.clock;
    this.#events = options.events;
    this.#streamOf = options.streamOf;
    this.#homes = new SharedStep(async (serverUuids) => {
      const homes = new Map((await store.homes([...new Set(serverUuids)])).map((home) => [home.serverUuid, home]));
      return serverUuids.map((serverUuid) => homes.get(serverUuid) ?? null);
    });
  }

  /** Resolves when it is settled: a destroy was answered, or the host is lost. Rejects when the conductor stops. */
  async settle(guest: FoundGuest): Promise<void> {
    const home = await this.homeOf(guest.serverUuid);
    const fate = guestFate(guest, home);
    if (fate === "leave") return;
    const { host, serverUuid, attemptId } = guest;
    const stream = this.#streamOf(host);
    // Nobody to ask and nobody to wait for: its guests are compared with the database when it comes back.
    if (stream === null) return;
    this.#events.guestSettled(guest, fate);
    const name = { host, serverUuid, attemptId };
    if (fate === "start") {
      stream.send({ body: { $case: "start", value: { ...name, revision: home?.revision ?? 0 } } });
      return;
    }
    stream.send({ body: { $case: "destroy", value: name } });
    await this.#destroyed(guest);
  }

  /** The server's row, read together with others'. */
  homeOf(serverUuid: string): Promise<Home | null> {
    return this.#commits.answered("homes", this.#homes, serverUuid);
  }

  /** An agent's answer to a destroy of one attempt. */
  reported(report: DestroyReport): void {
    if (report.failed !== "") this.#events.leftBehind(report.serverUuid, report.host, report.failed);
    this.#destroys.get(keyOf(report))?.done();
  }

  hostLost(host: string): void {
    for (const waiting of this.#destroys.values()) if (waiting.host === host) waiting.done();
  }

  async #destroyed(guest: FoundGuest): Promise<void> {
    const key = keyOf(guest);
    let waiting = this.#destroys.get(key);
    if (waiting === undefined) {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting = { host: guest.host, done: resolve, promise };
      this.#destroys.set(key, waiting);
    }
    try {
      await withDeadline(waiting.promise, DESTROY_ANSWER_MS, "destroying a guest", this.#clock);
    } catch {
      this.#events.leftBehind(guest.serverUuid, guest.host, "the agent did not answer");
    } finally {
      if (this.#destroys.get(key) === waiting) this.#destroys.delete(key);
    }
  }
}

function keyOf(guest: { readonly host: string; readonly serverUuid: string; readonly attemptId: string }): string {
  return `${guest.host} ${guest.serverUuid} ${guest.attemptId}`;
}
