import type { Expiry } from "../../core/tasks/expiry-limit.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import { Ticker } from "../../runtime/ticker.ts";
import type { AgentConnection, AgentRegistry } from "./agent-registry.ts";
import type { ConductorEvents } from "./events.ts";
import type { GuestComparer } from "./guest-comparer.ts";
import type { ConductorStore } from "./ports.ts";
import type { ConductorSettings } from "./settings.ts";
import type { TreeKeeper } from "./tree-keeper.ts";

const WATCH_MS = 1_000;
/**
 * After this time a comparison that hangs (for example because a guest cannot be removed) makes room for others. Its host gets another turn
 * later.
 */
const COMPARE_MS = 30_000;
/** A connection is closed after this many missing heartbeats. Agents get the same time to dial a conductor that has started. */
const SILENT_HEARTBEATS = 3;
/** How many rounds another conductor may lag behind when this one judges the agents that are connected there. */
const ROUNDS_BEHIND = 2;
/** A gap of fewer rounds than this means nothing, because a busy machine may miss a few. */
const MISSED_ROUNDS = 3;
const COMPARISONS_MAX = 200;
const NONE_EXPIRED: Expiry = { down: [], heldUp: [] };

/**
 * How long this conductor has listened to agents without a break. The silence of a host means nothing while no conductor was listening.
 * After a start, a pause of the process or an outage of the database, agents therefore get the full time to be heard before their hosts go
 * down.
 */
class ListeningTime {
  readonly #clock: Clock;
  readonly #leastMs: number;
  #sinceMs = Number.NEGATIVE_INFINITY;
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, leastMs: number) {
    this.#clock = clock;
    this.#leastMs = leastMs;
  }

  /**
   * Must be called in each round in which the connected agents were recorded as seen. After a break, other conductors may not have recorded
   * their agents yet. So a break that is slightly shorter than the permitted silence also restarts the listening time.
   */
  isLongEnough(): boolean {
    const nowMs = this.#clock.monotonic();
    const breakMs = Math.max(this.#leastMs - ROUNDS_BEHIND * WATCH_MS, MISSED_ROUNDS * WATCH_MS);
    if (nowMs - this.#lastMs > breakMs) this.#sinceMs = nowMs;
    this.#lastMs = nowMs;
    return nowMs - this.#sinceMs >= this.#leastMs;
  }
}

/**
 * Each second, records which agents are alive, declares the hosts of silent agents down, and compares some hosts' guests with the database.
 */
export class AgentWatch {
  readonly #ticker: Ticker;
  /** The comparisons in progress, by host. Each promise resolves when its comparison ends. */
  readonly #comparing = new Map<string, Promise<void>>();
  #nextHost = 0;

  constructor(options: {
    readonly store: Pick<ConductorStore, "agentsSeen" | "expireAgents">;
    readonly registry: Pick<AgentRegistry, "connections">;
    readonly trees: Pick<TreeKeeper, "hosts" | "raise">;
    readonly comparer: Pick<GuestComparer, "compare">;
    readonly clock: Clock;
    readonly events: ConductorEvents;
    readonly settings: Pick<
      ConductorSettings,
      "unseenMs" | "heartbeatMs" | "downShareMax" | "downCountMin" | "auditHostsPerSecond"
    >;
  }) {
    const { store, registry, trees, comparer, clock, events, settings } = options;
    const listening = new ListeningTime(clock, Math.max(settings.unseenMs, SILENT_HEARTBEATS * settings.heartbeatMs));
    const limit = { shareMax: settings.downShareMax, countMin: settings.downCountMin };
    const liveness = async () => {
      const agentIds = registry.connections().map((connection) => connection.agentId);
      // Connected agents are recorded first, so that after a pause of the database no connected agent is declared dead.
      const seen = agentIds.length > 0 ? await store.agentsSeen(agentIds, settings.unseenMs) : null;
      trees.raise(seen?.down ?? []).catch((error) => events.comparisonFailed(error));
      if (!listening.isLongEnough()) return;
      const isAnyUnseen = seen?.othersUnseen ?? true;
      const { down: expired, heldUp } = isAnyUnseen ? await store.expireAgents(settings.unseenMs, limit) : NONE_EXPIRED;
      if (expired.length > 0) events.hostsDown(expired);
      events.hostsHeldUp(heldUp);
    };
    const compare = (connection: AgentConnection, host: string) => {
      const compared = withDeadline(comparer.compare(connection, host), COMPARE_MS, `comparing ${host}`, clock)
        .catch((error) => events.comparisonFailed(error))
        .finally(() => this.#comparing.delete(host));
      this.#comparing.set(host, compared);
    };
    // Comparisons are started without waiting for them, so that one host that hangs does not delay the others.
    const audit = () => {
      const hosts = trees.hosts();
      for (let count = Math.min(settings.auditHostsPerSecond, hosts.length); count > 0; count -= 1) {
        if (this.#comparing.size >= COMPARISONS_MAX) return;
        this.#nextHost = (this.#nextHost + 1) % hosts.length;
        const { connection, host } = hosts[this.#nextHost]!;
        if (!connection.stream.closed && !this.#comparing.has(host)) compare(connection, host);
      }
    };
    this.#ticker = new Ticker({
      clock,
      pauseMs: WATCH_MS,
      work: () => {
        audit();
        return liveness();
      },
      onError: (error) => events.databaseFailed("agents", error),
    });
  }

  start(): void {
    this.#ticker.start();
  }

  async stop(): Promise<void> {
    await this.#ticker.stop();
    await Promise.all(this.#comparing.values());
  }
}
