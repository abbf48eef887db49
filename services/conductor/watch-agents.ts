import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import { Ticker } from "../../runtime/ticker.ts";
import type { AgentConnection, AgentRegistry } from "./agent-registry.ts";
import type { GuestComparer } from "./compare-guests.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorStore } from "./ports.ts";
import type { ConductorSettings } from "./settings.ts";
import type { TreeKeeper } from "./take-trees.ts";

const WATCH_MS = 1_000;
/** A host whose comparison takes longer (a guest that cannot be removed) makes room for others; it has its turn again. */
const COMPARE_MS = 30_000;
const COMPARISONS_MAX = 200;

/** Each second: says which agents live, declares hosts of the others down, and compares some hosts' guests with the database. */
export class AgentWatch {
  readonly #liveness: Ticker;
  readonly #audit: Ticker;
  /** Hosts that are being compared, each with the end of it. */
  readonly #comparing = new Map<string, Promise<void>>();
  #nextHost = 0;

  constructor(options: {
    readonly store: Pick<ConductorStore, "agentsSeen" | "expireAgents">;
    readonly registry: Pick<AgentRegistry, "connections">;
    readonly trees: Pick<TreeKeeper, "hosts" | "raise">;
    readonly comparer: Pick<GuestComparer, "compare">;
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
    const compare = (connection: AgentConnection, host: string) => {
      const compared = withDeadline(comparer.compare(connection, host), COMPARE_MS, `comparing ${host}`, clock)
        .catch((error) => events.comparisonFailed(error))
        .finally(() => this.#comparing.delete(host));
      this.#comparing.set(host, compared);
    };
    // Begins comparisons and does not wait for them: one host that hangs must not keep the others from their turn.
    const audit = async () => {
      const hosts = trees.hosts();
      for (let count = Math.min(settings.auditHostsPerSecond, hosts.length); count > 0; count -= 1) {
        if (this.#comparing.size >= COMPARISONS_MAX) return;
        this.#nextHost = (this.#nextHost + 1) % hosts.length;
        const { connection, host } = hosts[this.#nextHost]!;
        if (!connection.stream.closed && !this.#comparing.has(host)) compare(connection, host);
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
    await Promise.all(this.#comparing.values());
  }
}
