import type { HostSighting } from "../../core/cell/cell-store.ts";
import type { AgentConnection } from "./agent-registry.ts";
import type { StepCommitter } from "./commit-steps.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorStore } from "./ports.ts";
import { SharedStep } from "./shared-step.ts";

/**
 * Keeps a host with one agent when two agents reach different conductors. The registry of each conductor knows its own connections
 * only, so the cell's database decides: the connection of an agent that is not the host's agent there is closed.
 */
export class HostHolders {
  readonly #store: Pick<ConductorStore, "sightings">;
  readonly #commits: StepCommitter;
  readonly #events: ConductorEvents;
  readonly #unseenMs: number;
  readonly #sighting: SharedStep<string, HostSighting | undefined>;
  /** For each connection whether the database had no other agent for its hosts when it arrived. */
  readonly #free = new WeakMap<AgentConnection, Promise<boolean>>();

  constructor(options: {
    readonly store: Pick<ConductorStore, "sightings">;
    readonly commits: StepCommitter;
    readonly events: ConductorEvents;
    /** An agent that no conductor has seen for so long lives no longer. */
    readonly unseenMs: number;
  }) {
    const { store } = options;
    this.#store = store;
    this.#commits = options.commits;
    this.#events = options.events;
    this.#unseenMs = options.unseenMs;
    this.#sighting = new SharedStep(async (hosts) => {
      const found = new Map((await store.sightings(hosts)).map((sighting) => [sighting.name, sighting]));
      return hosts.map((host) => found.get(host));
    });
  }

  /**
   * Resolves with whether no other living agent has one of the hosts; else the connection is closed with the reason. It asks once
   * for each connection. Rejects when the conductor stops.
   */
  isFree(connection: AgentConnection): Promise<boolean> {
    const known = this.#free.get(connection);
    if (known !== undefined) return known;
    const hosts = [...connection.hosts.keys()];
    const asked = this.#commits
      .insist("sightings", () => this.#store.sightings(hosts))
      .then((sightings) => this.#judge(connection, sightings));
    this.#free.set(connection, asked);
    return asked;
  }

  /**
   * Like `isFree`, but for one host, and it asks again each time. Two agents may come up at the same moment: the later one keeps the host, and
   * the earlier one learns of it here, when its host is up or when its guests are compared.
   */
  async isStillFree(connection: AgentConnection, host: string): Promise<boolean> {
    const sighting = await this.#commits.answered("sightings", this.#sighting, host);
    return this.#judge(connection, sighting === undefined ? [] : [sighting]);
  }

  #judge(connection: AgentConnection, sightings: readonly HostSighting[]): boolean {
    const { agentId, stream } = connection;
    const taken = sightings.find((one) => one.agentId !== agentId && one.up && one.seenAgoMs < this.#unseenMs);
    if (taken === undefined) return true;
    const reason = `host ${taken.name} is carried by agent ${taken.agentId}, which a conductor of the cell has seen ${Math.round(taken.seenAgoMs)} ms ago: stop that agent, or take the host out of one of the two agents' hosts`;
    if (!stream.closed) this.#events.agentRefused(agentId, reason);
    stream.close(reason);
    return false;
  }
}
