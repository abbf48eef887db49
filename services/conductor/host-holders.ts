import type { HostSighting } from "../../core/stores/cell/cell-store.ts";
import type { AgentConnection } from "./agent-registry.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorStore } from "./ports.ts";
import { SharedStep } from "./shared-step.ts";
import type { StepCommitter } from "./step-committer.ts";

/**
 * Ensures that only one agent holds a host when two agents reach different conductors. Each conductor's registry knows only its own
 * connections, so the cell's database decides. The connection of an agent that is not the host's agent in the database is closed.
 */
export class HostHolders {
  readonly #store: Pick<ConductorStore, "sightings">;
  readonly #commits: StepCommitter;
  readonly #events: ConductorEvents;
  readonly #unseenMs: number;
  readonly #sighting: SharedStep<string, HostSighting | undefined>;
  /** For each connection, whether the database had no other agent for its hosts when the connection arrived. */
  readonly #free = new WeakMap<AgentConnection, Promise<boolean>>();

  constructor(options: {
    readonly store: Pick<ConductorStore, "sightings">;
    readonly commits: StepCommitter;
    readonly events: ConductorEvents;
    /** An agent that no conductor has seen for this long counts as dead. */
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
   * Resolves with true when no other live agent has one of the hosts. Otherwise closes the connection with the reason. The database is
   * asked once for each connection. Rejects when the conductor stops.
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
   * Checks a single host like `isFree`, but asks the database each time. When two agents come up at the same moment, the later one keeps
   * the host. The earlier one is detected here, when its host is brought up or its guests are compared.
   */
  async isStillFree(connection: AgentConnection, host: string): Promise<boolean> {
    return this.isFreeBy(connection, (await this.#commits.answered("sightings", this.#sighting, host)) ?? null);
  }

  /** Checks a single host like `isStillFree`, by a sighting that was read just now. It is null for a host that the cell does not know. */
  isFreeBy(connection: AgentConnection, sighting: HostSighting | null): boolean {
    return this.#judge(connection, sighting === null ? [] : [sighting]);
  }

  #judge(connection: AgentConnection, sightings: readonly HostSighting[]): boolean {
    const { agentId, stream } = connection;
    const taken = sightings.find((one) => one.agentId !== agentId && one.up && one.seenAgoMs < this.#unseenMs);
    if (taken === undefined) return true;
    const reason = `host ${taken.name} belongs to agent ${taken.agentId}, which a conductor of the cell has seen ${Math.round(taken.seenAgoMs)} ms ago: stop that agent, or remove the host from the hosts of one of the two agents`;
    if (!stream.closed) this.#events.agentRefused(agentId, reason);
    stream.close(reason);
    return false;
  }
}
