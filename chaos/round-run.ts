import { setTimeout as delay } from "node:timers/promises";
import { type AuditReport, isClean } from "../audit/audit-report.ts";
import type { ChaosApi } from "./chaos-api.ts";
import type { ChaosCloud } from "./chaos-cloud.ts";
import type { ChaosHistory } from "./chaos-history.ts";
import { type ChaosServer, isOpen } from "./chaos-server.ts";
import type { ChaosFlavors } from "./create-flavors.ts";
import { findUnanswered, lookForReturned } from "./find-unanswered.ts";
import { askForDelete, Load } from "./load.ts";
import { OperationsLoad } from "./operations-load.ts";
import type { Plan, Round } from "./plan.ts";
import { figuresOfRound, type RoundFigures } from "./round-figures.ts";
import { RoundNemesis } from "./round-nemesis.ts";
import { scheduleOf } from "./schedule.ts";
import { ServerWatch } from "./server-watch.ts";
import { unmet } from "./unmet-expectations.ts";

export interface RoundOptions {
  readonly plan: Plan;
  readonly round: Round;
  readonly durationMs: number;
  readonly cloud: ChaosCloud;
  readonly api: ChaosApi;
  readonly history: ChaosHistory;
  readonly random: () => number;
  readonly flavors: ChaosFlavors;
  /** Prefix of the names of servers, different for each round of each run. */
  readonly namePrefix: string;
  readonly nextFaultId: () => number;
  readonly signal: AbortSignal;
}

const LOOK_MS = 50;
/** A finding of the audit counts only when it persists for this long; before that, it may be work in flight. */
const IN_FLIGHT_MS = 30_000;
const AUDIT_PAUSE_MS = 2_000;
const GONE_MS_MAX = 60_000;
/** Number of deletes of the sweep that are under way at a time. */
const SWEPT_AT_ONCE = 16;
const SWEEP_TRIES = 3;

/** One round of a plan: load and faults → rest → audit → deletion of all servers. */
export class RoundRun {
  readonly servers: ChaosServer[] = [];
  readonly #options: RoundOptions;
  readonly #nemesis: RoundNemesis;
  readonly #load: Load;
  readonly #operations: OperationsLoad;
  readonly #watch: ServerWatch;
  #stage = "load";

  constructor(options: RoundOptions) {
    this.#options = options;
    this.#nemesis = new RoundNemesis(options);
    const { plan } = options;
    this.#load = new Load({
      ...options,
      ...{ plan: plan.load, servers: this.servers, failShare: () => this.#nemesis.failShare },
      flavor: options.flavors.small,
    });
    this.#operations = new OperationsLoad(options);
    this.#watch = new ServerWatch({
      ...options,
      ...{ servers: this.servers, onEnd: (server) => this.#onEnd(server) },
    });
  }

  /** The state of the round in one line. */
  get state(): string {
    const { asked, accepted, active, error, deleted, stuck } = figuresOfRound("", this.servers, null);
    const faults = this.#nemesis.lasting.join("; ");
    const name = this.#options.round.name === "" ? "" : `${this.#options.round.name}: `;
    const counts = `${asked} asked, ${accepted} accepted, ${active} ACTIVE, ${error} ERROR, ${deleted} deleted, ${stuck} open`;
    return `${name}${this.#stage}: ${counts}${faults === "" ? "" : `  [${faults}]`}`;
  }

  /** Throws when the run is broken off, or when the cloud could not be made whole. */
  async carryOut(): Promise<{
    readonly figures: RoundFigures;
    readonly report: AuditReport;
    readonly failures: readonly string[];
  }> {
    const { plan, round, cloud, api, history } = this.#options;
    this.#watch.begin();
    try {
      await this.#harm();
      this.#stage = "settling";
      await this.#unlessBrokenOff(cloud.makeWhole());
      const doubled = await findUnanswered({ servers: this.servers, api, history });
      const isSettled = await this.#settle();
      this.#stage = "audit";
      const report = await this.#audit();
      const figures = figuresOfRound(round.name, this.servers, await cloud.holders());
      const missed = unmet(plan.expect, figures, this.servers, history);
      this.#stage = "deleting";
      return { figures, report, failures: [...doubled, ...missed, ...(isSettled ? await this.#sweep() : [])] };
    } finally {
      await this.#watch.stop();
    }
  }

  #onEnd(server: ChaosServer): void {
    const { plan, random } = this.#options;
    if (this.#stage === "load" && server.state === "ACTIVE" && random() < plan.load.operations)
      this.#operations.follow(server);
    this.#load.onEnd(server);
  }

  async #harm(): Promise<void> {
    const { round, durationMs, signal } = this.#options;
    this.#nemesis.begin(scheduleOf(round.nemesis, durationMs));
    this.#load.begin();
    try {
      await this.#until(() => this.#load.done && this.#nemesis.done, durationMs);
      this.#stage = "healing";
    } finally {
      await Promise.all([this.#nemesis.stop(), this.#load.stop(), this.#operations.stop()]);
    }
    signal.throwIfAborted();
  }

  async #settle(): Promise<boolean> {
    const { plan, history } = this.#options;
    const begunMs = history.now();
    const isSettled = await this.#until(() => !this.servers.some(isOpen), plan.settleMs);
    const open = this.servers.filter(isOpen).length;
    const ms = Math.round(history.now() - begunMs);
    history.write({ who: "runner", what: isSettled ? "settled" : "not-settled", open, ms });
    return isSettled;
  }

  /** A finding that persists for a while is not work in flight. */
  async #audit(): Promise<AuditReport> {
    const { cloud, history, signal } = this.#options;
    const deadline = history.now() + IN_FLIGHT_MS;
    for (;;) {
      try {
        const report = await this.#unlessBrokenOff(cloud.audit({ pauseMs: AUDIT_PAUSE_MS, patienceMs: 0 }));
        if (isClean(report) || history.now() > deadline) return report;
      } catch (error) {
        // A database may not answer in time on a busy machine, which breaks no law.
        if (signal.aborted || history.now() > deadline) throw error;
        await delay(AUDIT_PAUSE_MS);
      }
    }
  }

  /** Deletes every server, after which no records of them may be left. Resolves with descriptions of those that are. */
  async #sweep(): Promise<readonly string[]> {
    const { cloud, api, history } = this.#options;
    for (let tries = 1; tries <= SWEEP_TRIES && this.#staying().length > 0; tries += 1) {
      const left = [...this.#staying()];
      const workers = Array.from({ length: SWEPT_AT_ONCE }, async () => {
        for (let server = left.pop(); server !== undefined; server = left.pop()) {
          await askForDelete(server, { api, history });
        }
      });
      await Promise.all(workers);
      await this.#until(() => !this.servers.some(isOpen), GONE_MS_MAX);
    }
    await lookForReturned({ servers: this.servers, api });
    const stay = this.#staying();
    if (stay.length > 0) return [`${stay.length} servers could not be deleted: ${stay[0]?.uuid}`];
    const own = new Set(this.servers.flatMap(({ uuid }) => uuid ?? []));
    let holding: readonly string[] = [];
    const isEmpty = await this.#until(async () => {
      holding = ((await cloud.holders()) ?? []).filter((uuid) => own.has(uuid));
      return holding.length === 0;
    }, GONE_MS_MAX);
    return isEmpty ? [] : [`${holding.length} deleted servers still have allocations: ${holding[0]}`];
  }

  /** The servers that are still to be deleted, including those whose delete got no clear answer. */
  #staying(): readonly ChaosServer[] {
    return this.servers.filter(({ uuid, state, lost }) => uuid !== null && state !== "DELETED" && !lost);
  }

  /** Rejects at once when the run is broken off; the cloud then ends the running work. */
  async #unlessBrokenOff<Value>(work: Promise<Value>): Promise<Value> {
    const { signal } = this.#options;
    const broken = Promise.withResolvers<never>();
    const breakOff = () => broken.reject(signal.reason);
    signal.addEventListener("abort", breakOff);
    try {
      signal.throwIfAborted();
      return await Promise.race([work, broken.promise]);
    } finally {
      signal.removeEventListener("abort", breakOff);
      work.catch(() => undefined); // The promise may reject after the last await.
    }
  }

  /** Resolves with false when the condition did not become true in time. Throws when the run is broken off. */
  async #until(isTrue: () => boolean | Promise<boolean>, withinMs: number): Promise<boolean> {
    const { history, signal } = this.#options;
    const deadline = history.now() + withinMs;
    while (!(await isTrue())) {
      signal.throwIfAborted();
      if (history.now() > deadline) return false;
      await delay(LOOK_MS);
    }
    return true;
  }
}
