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
/** Agents that were silent for so many heartbeats are given up; so many they get to dial a conductor that has started. */
const SILENT_HEARTBEATS = 3;
/** Rounds of the watch that another conductor may be behind when this one judges the agents that are connected there. */
const ROUNDS_BEHIND = 2;
/** Fewer rounds than this may be missed on a busy machine, and mean nothing. */
const MISSED_ROUNDS = 3;
const COMPARISONS_MAX = 200;

/**
 * Since when this conductor has listened to agents without a break. Silence tells nothing of a host while nobody was there to hear it: after a
 * start, a pause of the process or a database that was away, agents get as long to be heard of as before they are given up.
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
   * To be asked in each round in which the agents that are connected were written down as seen. After a break, other conductors may not yet
   * have written down theirs, so a break that is a little shorter than the silence that counts interrupts the listening, too.
   */
  isLongEnough(): boolean {
    const nowMs = this.#clock.monotonic();
    const breakMs = Math.max(this.#leastMs - ROUNDS_BEHIND * WATCH_MS, MISSED_ROUNDS * WATCH_MS);
    if (nowMs - this.#lastMs > breakMs) this.#sinceMs = nowMs;
    this.#lastMs = nowMs;
    return nowMs - this.#sinceMs >= this.#leastMs;
  }
}

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
      // Seen first: after a pause of the database nobody may be declared dead who is connected here.
      const down = agentIds.length > 0 ? await store.agentsSeen(agentIds) : [];
      trees.raise(down).catch((error) => events.comparisonFailed(error));
      if (!listening.isLongEnough()) return;
      const { down: expired, heldUp } = await store.expireAgents(settings.unseenMs, limit);
      if (expired.length > 0) events.hostsDown(expired);
      events.hostsHeldUp(heldUp);
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
