import type { ConductorStream } from "../../core/agent/link.ts";
import type { TreeReport, TreeVerdict } from "../../proto/gen/berth/agent.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import type { AgentEvents } from "./events.ts";

/**
 * Reports without a verdict are repeated when the conductor has judged none for this time. While it is busy with thousands of hosts, repeated reports would
 * keep it from the first ones. A refused report is repeated, too, because the cause of the refusal may be gone.
 */
const REPEAT_MS = 5_000;
/**
 * After this time they are repeated although the conductor judges others, since those may be of hosts that change all the time. While it judges none at
 * all, each wait is twice the last one, up to this time.
 */
const REPEAT_MS_MAX = 60_000;
/**
 * This many reports wait for verdicts at a time, changed hosts apart. A conductor that gets all hosts of all agents at once keeps them in memory, and
 * those that are repeated meanwhile make it slower still.
 */
const ASKED_MAX = 50;
/**
 * After this time a host is reported again if the cell has kept something of it because it was in use. The use may have
 * ended.
 */
const KEPT_MS = 60_000;
/**
 * After this time all hosts are reported again. That corrects changes that somebody has made to the agent's part of a tree, and a tree
 * that a conductor has stored late, after the agent had reported a newer one to another conductor. Nova's agents do so each minute.
 */
const AGAIN_MS = 600_000;

/**
 * Reports the provider tree of each host to one conductor, the reporting conductor, until it has accepted every report. When it is
 * lost, all trees are reported to another conductor. So at any time some conductor is responsible for each host being up. A tree that changes
 * is reported at once, and all of them again from time to time.
 */
export class TreeReporter {
  readonly #clock: Clock;
  readonly #events: AgentEvents;
  readonly #anyWelcomed: () => ConductorStream | null;
  readonly #trees: Map<string, TreeReport>;
  /** Hosts whose latest report has not been accepted, each with the revision of the first report of its present tree to this conductor. */
  readonly #open = new Map<string, number>();
  /** Open hosts that are reported as soon as fewer than `ASKED_MAX` are asked. */
  readonly #waiting = new Set<string>();
  /** Open hosts that were reported last time, and whose verdicts have not arrived. */
  readonly #asked = new Set<string>();
  /** Hosts whose present tree the reporting conductor has accepted. */
  readonly #accepted = new Set<string>();
  /** Hosts of which the cell has kept something that they no longer offer, with the cell's explanation. */
  readonly #kept = new Map<string, string>();
  #revision: number;
  #reportingConductor: ConductorStream | null = null;
  #timer: Timer | null = null;
  /** When the reporting conductor last judged a report, by the monotonic clock. */
  #judgedAtMs = Number.NEGATIVE_INFINITY;
  /** When all open hosts were last reported, or the first one was opened, by the monotonic clock. */
  #reportedAtMs = 0;
  /** How often in a row all open hosts were repeated without a verdict. */
  #unanswered = 0;
  #keptTimer: Timer | null = null;
  #againTimer: Timer | null = null;

  constructor(options: {
    readonly clock: Clock;
    readonly events: AgentEvents;
    readonly anyWelcomed: () => ConductorStream | null;
    readonly trees: readonly TreeReport[];
  }) {
    this.#clock = options.clock;
    this.#events = options.events;
    this.#anyWelcomed = options.anyWelcomed;
    this.#trees = new Map(options.trees.map((tree) => [tree.host, tree]));
    // Starts above every revision of this agent's last process, whose verdicts may still be in flight.
    this.#revision = options.clock.now();
  }

  /** True when a conductor has accepted every host's tree. */
  get settled(): boolean {
    return this.#reportingConductor !== null && this.#accepted.size === this.#trees.size;
  }

  welcomed(stream: ConductorStream): void {
    if (this.#reportingConductor !== null && !this.#reportingConductor.closed) return;
    this.#reportingConductor = stream;
    for (const hosts of [this.#accepted, this.#open, this.#waiting, this.#asked]) hosts.clear();
    this.#unanswered = 0;
    this.#reportAll();
  }

  /** Reports a host that has changed, and no other one. Does nothing for a host that is not the agent's. */
  update(tree: TreeReport): void {
    if (!this.#trees.has(tree.host)) return;
    this.#trees.set(tree.host, tree);
    this.#accepted.delete(tree.host);
    this.#open.set(tree.host, this.#revision + 1);
    this.#waiting.delete(tree.host);
    this.#asked.add(tree.host);
    if (this.#send([tree.host]) && this.#timer === null) this.#repeatLater();
  }

  lost(stream: ConductorStream): void {
    if (stream !== this.#reportingConductor) return;
    this.#reportingConductor = null;
    const next = this.#anyWelcomed();
    if (next !== null) this.welcomed(next);
  }

  judged(verdict: TreeVerdict, from: ConductorStream): void {
    const { host, revision, refused, kept } = verdict;
    const firstRevision = this.#open.get(host);
    if (from !== this.#reportingConductor || firstRevision === undefined || revision < firstRevision) return;
    this.#judgedAtMs = this.#clock.monotonic();
    this.#asked.delete(host);
    if (refused !== "") this.#events.treeRefused(host, refused);
    else {
      this.#open.delete(host);
      this.#waiting.delete(host);
      this.#accepted.add(host);
      this.#keep(host, kept);
    }
    this.#sendWaiting();
    if (this.#unanswered > 0) {
      this.#unanswered = 0;
      this.#timer?.cancel();
      this.#repeatLater();
    }
  }

  stop(): void {
    this.#timer?.cancel();
    this.#keptTimer?.cancel();
    this.#againTimer?.cancel();
  }

  #reportAll(): void {
    for (const host of this.#trees.keys()) if (!this.#open.has(host)) this.#open.set(host, this.#revision + 1);
    this.#report();
    this.#againTimer?.cancel();
    this.#againTimer = this.#clock.setTimer(AGAIN_MS, () => this.#reportAll());
  }

  /**
   * Reports all hosts that are open. Those that have waited longest come first, so that hosts whose verdicts never arrive do not keep others from
   * theirs.
   */
  #report(): void {
    this.#timer?.cancel();
    this.#timer = null;
    for (const host of this.#open.keys()) this.#waiting.add(host);
    this.#asked.clear();
    if (this.#sendWaiting()) this.#repeatLater();
  }

  /** Reports waiting hosts until enough are asked. Returns false if there is nobody to send them to. */
  #sendWaiting(): boolean {
    const next = [...this.#waiting.values().take(Math.max(0, ASKED_MAX - this.#asked.size))];
    if (next.length === 0 || !this.#send(next)) return false;
    for (const host of next) {
      this.#waiting.delete(host);
      this.#asked.add(host);
    }
    return true;
  }

  /** Sends the reports of these hosts. Returns false if there is nobody to send them to. */
  #send(hosts: Iterable<string>): boolean {
    const conductor = this.#reportingConductor;
    if (conductor === null || conductor.closed || this.#open.size === 0) return false;
    this.#revision += 1;
    for (const host of hosts) {
      const tree = this.#trees.get(host);
      if (tree !== undefined) conductor.send({ body: { $case: "tree", value: { ...tree, revision: this.#revision } } });
    }
    return true;
  }

  #repeatLater(): void {
    this.#reportedAtMs = this.#clock.monotonic();
    this.#timer = this.#clock.setTimer(Math.min(REPEAT_MS * 2 ** this.#unanswered, REPEAT_MS_MAX), () =>
      this.#repeat(),
    );
  }

  #repeat(): void {
    const dueAtMs = Math.min(this.#judgedAtMs + REPEAT_MS, this.#reportedAtMs + REPEAT_MS_MAX);
    const restMs = dueAtMs - this.#clock.monotonic();
    if (restMs > 0) {
      this.#timer = this.#clock.setTimer(restMs, () => this.#repeat());
      return;
    }
    if (this.#judgedAtMs < this.#reportedAtMs) this.#unanswered += 1;
    this.#report();
  }

  #keep(host: string, kept: readonly string[]): void {
    if (kept.length === 0) {
      this.#kept.delete(host);
      return;
    }
    const said = kept.join("; ");
    if (this.#kept.get(host) !== said) this.#events.treeKept(host, kept);
    this.#kept.set(host, said);
    this.#keptTimer ??= this.#clock.setTimer(KEPT_MS, () => {
      this.#keptTimer = null;
      for (const one of this.#kept.keys()) if (!this.#open.has(one)) this.#open.set(one, this.#revision + 1);
      this.#report();
    });
  }
}
