import type { ConductorStream } from "../../core/agent/link.ts";
import type { TreeReport, TreeVerdict } from "../../proto/gen/berth/agent.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import type { AgentEvents } from "./events.ts";

/** A report without a verdict is repeated after this time. So is a refused one, because the cause of the refusal may be gone. */
const REPEAT_MS = 5_000;

/**
 * Reports the provider tree of each host to one conductor, the sponsor, until the sponsor has accepted every report. When the sponsor is
 * lost, all trees are reported to another conductor. So at any time some conductor is responsible for each host being up.
 */
export class TreeReporter {
  readonly #clock: Clock;
  readonly #events: AgentEvents;
  readonly #anyWelcomed: () => ConductorStream | null;
  readonly #trees: ReadonlyMap<string, TreeReport>;
  /** Hosts whose latest report has not been accepted. */
  readonly #open = new Set<string>();
  #revision: number;
  /** The revision of the first report to this sponsor. Trees do not change, so a verdict on any later report counts. */
  #firstRevision = 0;
  #sponsor: ConductorStream | null = null;
  #timer: Timer | null = null;

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
    return this.#sponsor !== null && this.#open.size === 0;
  }

  welcomed(stream: ConductorStream): void {
    if (this.#sponsor !== null && !this.#sponsor.closed) return;
    this.#sponsor = stream;
    this.#firstRevision = this.#revision + 1;
    for (const host of this.#trees.keys()) this.#open.add(host);
    this.#report();
  }

  lost(stream: ConductorStream): void {
    if (stream !== this.#sponsor) return;
    this.#sponsor = null;
    const next = this.#anyWelcomed();
    if (next !== null) this.welcomed(next);
  }

  judged(verdict: TreeVerdict, from: ConductorStream): void {
    if (from !== this.#sponsor || verdict.revision < this.#firstRevision) return;
    if (verdict.refused === "") this.#open.delete(verdict.host);
    else this.#events.treeRefused(verdict.host, verdict.refused);
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #report(): void {
    this.#timer?.cancel();
    const sponsor = this.#sponsor;
    if (sponsor === null || sponsor.closed || this.#open.size === 0) return;
    this.#revision += 1;
    for (const host of this.#open) {
      const tree = this.#trees.get(host);
      if (tree !== undefined) sponsor.send({ body: { $case: "tree", value: { ...tree, revision: this.#revision } } });
    }
    this.#timer = this.#clock.setTimer(REPEAT_MS, () => this.#report());
  }
}
