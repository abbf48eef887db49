import type { TreeReport } from "../../proto/gen/berth/agent.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import type { AgentEvents } from "./events.ts";
import type { HostConfig } from "./host-config.ts";
import type { LookAtHosts, WatchedHosts } from "./host-source.ts";
import { messageOf } from "./message-of.ts";

/**
 * Looks at an agent's hosts while it runs and passes on each tree that has changed. A look that fails changes nothing: the hosts keep the
 * trees that they had. The set of hosts is that of the agent's start, because conductors know an agent by the hosts of its hello.
 */
export class HostWatcher {
  readonly #clock: Clock;
  readonly #events: AgentEvents;
  readonly #source: WatchedHosts;
  readonly #everyMs: number;
  readonly #treeOf: (host: HostConfig) => TreeReport;
  readonly #onChanged: (tree: TreeReport) => void;
  /**
   * The hosts as they were last seen, with their configurations as JSON. These are compared rather than the trees, which take far longer
   * to make: an agent may have hundreds of hosts, and each look keeps it from everything else.
   */
  readonly #seen: Map<string, { readonly host: HostConfig; readonly text: string }>;
  #warnings: ReadonlySet<string> = new Set();
  #otherHosts = "";
  #timer: Timer | null = null;
  #stopped = false;

  constructor(options: {
    readonly clock: Clock;
    readonly events: AgentEvents;
    readonly source: WatchedHosts;
    /** The time between two looks. It varies by a quarter, so that agents that were started together do not all report together. */
    readonly everyMs: number;
    readonly treeOf: (host: HostConfig) => TreeReport;
    /** The hosts that the agent has started with. */
    readonly hosts: readonly HostConfig[];
    readonly onChanged: (tree: TreeReport) => void;
  }) {
    this.#clock = options.clock;
    this.#events = options.events;
    this.#source = options.source;
    this.#everyMs = options.everyMs;
    this.#treeOf = options.treeOf;
    this.#onChanged = options.onChanged;
    this.#seen = new Map(options.hosts.map((host) => [host.name, { host, text: JSON.stringify(host) }]));
  }

  start(): void {
    const { present } = this.#source;
    if (present !== undefined) {
      const lookAtPresent = () => this.#lookBy(() => present());
      this.#source.watch?.(lookAtPresent);
      // The driver may have learnt something since the hosts were given to this object.
      lookAtPresent();
    }
    if (this.#source.isLive) this.#plan();
  }

  /** Looks now, in addition to the planned looks. */
  look(): void {
    this.#lookBy(() => this.#source.look());
  }

  #lookBy(look: () => LookAtHosts): void {
    if (this.#stopped) return;
    let seen: LookAtHosts;
    try {
      seen = look();
    } catch (error) {
      this.#events.hostsUnreadable(messageOf(error));
      return;
    }
    this.#warn(seen.warnings);
    this.#compareNames(seen);
    for (const host of seen.hosts) {
      const before = this.#seen.get(host.name);
      if (before === undefined || before.host === host) continue;
      const text = JSON.stringify(host);
      if (before.text === text) continue;
      this.#seen.set(host.name, { host, text });
      this.#compareTrees(before.host, host);
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** A configuration holds more than its host's tree, so it may change while the tree stays the same. */
  #compareTrees(before: HostConfig, now: HostConfig): void {
    const tree = this.#treeOf(now);
    if (JSON.stringify(tree) === JSON.stringify(this.#treeOf(before))) return;
    this.#events.treeChanged(tree.host);
    this.#onChanged(tree);
  }

  #plan(): void {
    const delayMs = this.#everyMs * (0.75 + Math.random() / 2);
    this.#timer = this.#clock.setTimer(delayMs, () => {
      this.look();
      if (!this.#stopped) this.#plan();
    });
  }

  /** A warning is logged when it first applies, and again only after it has ceased to apply. */
  #warn(warnings: readonly string[]): void {
    for (const warning of warnings) if (!this.#warnings.has(warning)) this.#events.hostDoubtful(warning);
    this.#warnings = new Set(warnings);
  }

  #compareNames({ hosts }: LookAtHosts): void {
    const names = new Set(hosts.map(({ name }) => name));
    const added = [...names].filter((name) => !this.#seen.has(name));
    const removed = [...this.#seen.keys()].filter((name) => !names.has(name));
    const others = JSON.stringify([added, removed]);
    if (others === this.#otherHosts) return;
    this.#otherHosts = others;
    if (added.length + removed.length > 0) this.#events.hostsDiffer(added, removed);
  }
}
