import type { Clock } from "../../runtime/clock.ts";
import { Ticker } from "../../runtime/ticker.ts";
import type { AgentRegistry } from "./agent-registry.ts";
import type { GuestComparer } from "./compare-guests.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorStore } from "./ports.ts";
import type { ConductorSettings } from "./settings.ts";
import type { TreeKeeper } from "./take-trees.ts";

const WATCH_MS = 1_000;

/** Each second: says which agents live, declares hosts of the others down, and compares some hosts' guests with the database. */
export class AgentWatch {
  readonly #liveness: Ticker;
  readonly #audit: Ticker;
  #nextHost = 0;

  constructor(options: {
    readonly store: Pick<ConductorStore, "agentsSeen" | "expireAgents">;
    readonly registry: AgentRegistry;
    readonly trees: TreeKeeper;
    readonly comparer: GuestComparer;
    readonly clock: Clock;
    readonly events: ConductorEvents;
    readonly settings: Pick<ConductorSettings, "unseenMs" | "auditHostsPerSecond">;
  }) {
    const { store, registry, trees, comparer, clock, events, settings } = options;
    const liveness = async () => {
      const agentIds = registry.connections().map((connection) => connection.agentId);
      // Seen first: after a pause of the database nobody may be declared dead who is connected here.
      const down = agentIds.length > 0 ? await store.agentsSeen(agentIds) : [];
      trees.raise(down).catch((error) => events.comparisonFailed(error));
      const expired = await store.expireAgents(settings.unseenMs);
      if (expired.length > 0) events.hostsDown(expired);
    };
    const audit = async () => {
      const hosts = trees.hosts();
      for (let count = Math.min(settings.auditHostsPerSecond, hosts.length); count > 0; count -= 1) {
        this.#nextHost = (this.#nextHost + 1) % hosts.length;
        const { connection, host } = hosts[this.#nextHost]!;
        if (!connection.stream.closed) await comparer.compare(connection, host);
      }
    };
    this.#liveness = new Ticker({
      clock,
      pauseMs: WATCH_MS,
      work: liveness,
      onError: (error) => events.databaseFailed("agents", error),
    });
    this.#audit = new Ticker({
      clock,
      pauseMs: WATCH_MS,
      work: audit,
      onError: (error) => events.comparisonFailed(error),
    });
  }

  start(): void {
    this.#liveness.start();
    this.#audit.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#liveness.stop(), this.#audit.stop()]);
  }
}
