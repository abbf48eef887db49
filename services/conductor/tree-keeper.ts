import type { HypervisorFacts } from "../../core/ledger/hypervisor-facts.ts";
import { whyClosed } from "../../core/ledger/merge-report.ts";
import type { ProviderTree } from "../../core/ledger/provider-tree.ts";
import type { ReportOutcome } from "../../core/ledger/report-outcome.ts";
import type { KnownRoot } from "../../core/stores/cell/cell-store.ts";
import type { TreeReport } from "../../proto/gen/berth/agent.ts";
import type { AgentConnection } from "./agent-registry.ts";
import type { ConductorEvents } from "./events.ts";
import type { GuestComparer } from "./guest-comparer.ts";
import type { HostHolders } from "./host-holders.ts";
import { hypervisorOfReport } from "./hypervisor-of.ts";
import type { ConductorLedger, ConductorStore } from "./ports.ts";
import { SharedStep } from "./shared-step.ts";
import type { StepCommitter } from "./step-committer.ts";
import { describeNamedAlike, foreignRoot, treeOfReport, verdictOn, whyNotBesideNeutron } from "./tree-of.ts";

/** How many hosts are compared at a time before they are brought up again. */
const RAISES_AT_A_TIME = 50;

const NOT_CARRIED = "the host is connected by another stream now";
const NOT_LISTED =
  "the agent has not listed the guests of the host, which must be compared with the cell's database before the host first comes up: the host is " +
  "asked again with the agent's next report; if that fails, too, see the log of the agent";

const REMOVED =
  "the host was removed after its tree was stored: it comes up as a new host with the agent's next report; to keep it out of the cloud, remove it from " +
  "the agent's hosts and delete its service again";

/** Why a report was refused, or what the cell keeps although the report leaves it out. */
type Verdict = { readonly refused: string } | { readonly kept: string[] };

interface HostUp {
  readonly agentId: string;
  readonly name: string;
  readonly rootProvider: string;
  readonly hypervisor: HypervisorFacts | undefined;
}

/**
 * Stores the provider trees that hosts report. A host comes up only after its tree is stored and no unwanted guest is left on it. An agent
 * reports to one conductor, which is responsible for its hosts from then on. It brings them up again when they were wrongly declared down,
 * and compares their guests with the database from time to time.
 */
export class TreeKeeper {
  readonly #comparer: GuestComparer;
  readonly #commits: StepCommitter;
  readonly #events: ConductorEvents;
  readonly #knownRoot: SharedStep<string, KnownRoot>;
  readonly #namedAlike: SharedStep<{ readonly name: string; readonly agentId: string }, string | null>;
  readonly #reportTree: SharedStep<ProviderTree, ReportOutcome>;
  /** Tells of each host whether it is up. It is not if it was removed after its tree was reported. */
  readonly #hostUp: SharedStep<HostUp, boolean>;
  readonly #holders: Pick<HostHolders, "isFree" | "isStillFree">;
  readonly #isBesideNeutron: boolean;
  readonly #carries: (connection: AgentConnection, host: string) => boolean;
  /** The hosts that this conductor has brought up, with their root providers. */
  readonly #up = new Map<AgentConnection, Map<string, HostUp>>();
  readonly #raising = new Set<AgentConnection>();
  /** Hosts whose report is being processed, with the latest report that has arrived meanwhile. */
  readonly #taking = new WeakMap<AgentConnection, Map<string, TreeReport | null>>();

  constructor(options: {
    readonly ledger: ConductorLedger;
    readonly store: Pick<ConductorStore, "hostsUp" | "knownRoots" | "hostsNamedAlike">;
    readonly comparer: GuestComparer;
    readonly commits: StepCommitter;
    readonly events: ConductorEvents;
    readonly holders: Pick<HostHolders, "isFree" | "isStillFree">;
    readonly carries: (connection: AgentConnection, host: string) => boolean;
    /** Whether servers' ports are in Neutron. */
    readonly isBesideNeutron: boolean;
  }) {
    const { ledger, store } = options;
    this.#comparer = options.comparer;
    this.#commits = options.commits;
    this.#events = options.events;
    this.#holders = options.holders;
    this.#carries = options.carries;
    this.#isBesideNeutron = options.isBesideNeutron;
    this.#knownRoot = new SharedStep((roots) => store.knownRoots(roots));
    this.#namedAlike = new SharedStep((hosts) => store.hostsNamedAlike(hosts));
    this.#reportTree = new SharedStep((trees) => ledger.reportTrees(trees));
    this.#hostUp = new SharedStep(async (hosts) => {
      const removed = new Set<string>();
      for (const [agentId, ofAgent] of Map.groupBy(hosts, (host) => host.agentId))
        for (const name of await store.hostsUp(agentId, ofAgent)) removed.add(name);
      return hosts.map(({ name }) => !removed.has(name));
    });
  }

  /**
   * Processes a report, and answers with a verdict when the host is up or cannot come up. Agents repeat a report until they get a verdict.
   * Of the reports that arrive while one is processed, only the latest is processed afterwards, and only if the host has changed: so they do
   * not pile up while the database is away. Rejects when the conductor stops.
   */
  async take(report: TreeReport, connection: AgentConnection): Promise<void> {
    const taking = this.#taking.get(connection) ?? new Map<string, TreeReport | null>();
    this.#taking.set(connection, taking);
    const { host } = report;
    if (taking.has(host)) {
      taking.set(host, report);
      return;
    }
    try {
      for (
        let next: TreeReport | null = report, last: TreeReport | null = null;
        next !== null && !saysTheSame(next, last);
      ) {
        taking.set(host, null);
        await this.#judge(next, connection);
        last = next;
        next = taking.get(host) ?? null;
      }
    } finally {
      taking.delete(host);
    }
  }

  async #judge(report: TreeReport, connection: AgentConnection): Promise<void> {
    const { host, revision } = report;
    const verdict = await this.#takeOver(report, connection);
    if ("refused" in verdict) this.#events.treeRefused(host, verdict.refused);
    else if (verdict.kept.length > 0) this.#events.treeKept(host, verdict.kept);
    connection.stream.send({
      body: { $case: "tree", value: { host, revision, refused: "", kept: [], ...verdict } },
    });
  }

  async #takeOver(report: TreeReport, connection: AgentConnection): Promise<Verdict> {
    if (!connection.hosts.has(report.host)) return { refused: "the agent's hello did not name the host" };
    if (!this.#carries(connection, report.host)) return { refused: NOT_CARRIED };
    if (!(await this.#holders.isFree(connection))) return { refused: NOT_CARRIED };
    const tree = treeOfReport(report);
    if ("refused" in tree) return tree;
    const twice = this.#isBesideNeutron ? whyNotBesideNeutron(report) : null;
    if (twice !== null) return { refused: twice };
    const hypervisor = hypervisorOfReport(report.hypervisor);
    if (hypervisor !== undefined && "refused" in hypervisor) return hypervisor;
    const root = await this.#whileCarried(report.host, connection, "known-roots", this.#knownRoot, tree.root);
    if (root === null) return { refused: NOT_CARRIED };
    const foreign = foreignRoot(report, root.outcome);
    if (foreign !== null) return { refused: foreign };
    if (root.outcome.hosts.length === 0) {
      const name = { name: report.host, agentId: connection.agentId };
      const alike = await this.#whileCarried(report.host, connection, "hosts-named-alike", this.#namedAlike, name);
      if (alike === null) return { refused: NOT_CARRIED };
      if (alike.outcome !== null) return { refused: describeNamedAlike(report.host, alike.outcome) };
    }
    const reported = await this.#whileCarried(report.host, connection, "trees", this.#reportTree, tree);
    if (reported === null) return { refused: NOT_CARRIED };
    const verdict = verdictOn(reported.outcome, hypervisor === undefined ? null : whyClosed(hypervisor));
    if ("refused" in verdict) return verdict;
    await this.#comparer.afterHello(connection, report.host);
    if (!(await this.#comparer.compareBeforeUp(connection, report.host))) return { refused: NOT_LISTED };
    const up: HostUp = {
      ...{ agentId: connection.agentId, name: report.host, rootProvider: report.rootProvider },
      hypervisor,
    };
    const isUp = await this.#whileCarried(report.host, connection, "hosts-up", this.#hostUp, up);
    if (isUp === null) return { refused: NOT_CARRIED };
    if (!isUp.outcome) {
      this.#up.get(connection)?.delete(report.host);
      return { refused: REMOVED };
    }
    if (!(await this.#holders.isStillFree(connection, report.host))) return { refused: NOT_CARRIED };
    const twin = root.outcome.hosts.length > 0 ? null : await this.#twinOf(report, connection, tree.root);
    if (twin !== null) return { refused: twin };
    const ofConnection = this.#up.get(connection) ?? new Map<string, HostUp>();
    this.#up.set(connection, ofConnection.set(report.host, up));
    if (connection.stream.closed) this.#up.delete(connection);
    return verdict;
  }

  /**
   * Another host may have come up with the same new root at the same moment, for example after the copying of a hosts file. Returns why the report is
   * refused then, or null.
   */
  async #twinOf(report: TreeReport, connection: AgentConnection, root: string): Promise<string | null> {
    const known = await this.#whileCarried(report.host, connection, "known-roots", this.#knownRoot, root);
    return known === null ? NOT_CARRIED : foreignRoot(report, known.outcome);
  }

  /**
   * Submits the item until it is answered, or until the connection no longer carries the host: then null. While the database was away the agent may
   * have reported to another conductor, and a repetition of the old report would replace the newer tree.
   */
  #whileCarried<Item, Outcome>(
    host: string,
    connection: AgentConnection,
    what: string,
    step: SharedStep<Item, Outcome>,
    item: Item,
  ): Promise<{ readonly outcome: Outcome } | null> {
    return this.#commits.insist(what, async (attempt) =>
      this.#carries(connection, host) ? { outcome: await step.submit(item, attempt > 1) } : null,
    );
  }

  lost(connection: AgentConnection): void {
    this.#up.delete(connection);
  }

  /** Hosts for which this conductor is responsible, each with its connection. */
  hosts(): { readonly connection: AgentConnection; readonly host: string }[] {
    return [...this.#up].flatMap(([connection, hosts]) => [...hosts.keys()].map((host) => ({ connection, host })));
  }

  /** Brings up hosts of these agents again, after comparing their guests. The agents are alive although some of their hosts are down. */
  async raise(agentIds: readonly string[]): Promise<void> {
    const wanted = new Set(agentIds);
    const connections = [...this.#up.keys()].filter(
      (connection) => wanted.has(connection.agentId) && !this.#raising.has(connection),
    );
    await Promise.all(connections.map((connection) => this.#raiseAll(connection)));
  }

  async #raiseAll(connection: AgentConnection): Promise<void> {
    this.#raising.add(connection);
    try {
      const hosts = [...(this.#up.get(connection)?.values() ?? [])];
      const raise = async (up: HostUp) => {
        await this.#comparer.compare(connection, up.name);
        const isUp = await this.#whileCarried(up.name, connection, "hosts-up", this.#hostUp, up);
        // A removed host comes back only with its tree, which its agent reports again.
        if (isUp?.outcome === false) this.#up.get(connection)?.delete(up.name);
      };
      // Each worker takes the next host when it has finished one, so that a host that hangs or fails does not delay the others.
      const raiseOneByOne = async () => {
        for (let up = hosts.pop(); up !== undefined; up = hosts.pop())
          await raise(up).catch((error) => this.#events.comparisonFailed(error));
      };
      await Promise.all(Array.from({ length: RAISES_AT_A_TIME }, raiseOneByOne));
    } finally {
      this.#raising.delete(connection);
    }
  }
}

function saysTheSame(report: TreeReport, last: TreeReport | null): boolean {
  return last !== null && JSON.stringify({ ...report, revision: 0 }) === JSON.stringify({ ...last, revision: 0 });
}
