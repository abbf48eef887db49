import { randomUUID } from "node:crypto";
import type { AuditReport } from "../audit/audit-report.ts";
import { isClean } from "../audit/audit-report.ts";
import { seededRandom } from "../core/scheduling/seeded-random.ts";
import { ChaosApi } from "./chaos-api.ts";
import type { ChaosCloud } from "./chaos-cloud.ts";
import { ChaosHistory } from "./chaos-history.ts";
import { checkHistory, failuresOf } from "./checkers/checker.ts";
import { standardCheckers } from "./checkers/standard-checkers.ts";
import { createFlavors } from "./create-flavors.ts";
import { DeathWatch } from "./death-watch.ts";
import type { HistoryLine } from "./history-line.ts";
import { lawVerdicts } from "./law-verdicts.ts";
import type { Plan } from "./plan.ts";
import { PlanError, requireFewFaults } from "./read-plan.ts";
import type { RoundFigures } from "./round-figures.ts";
import { RoundRun } from "./round-run.ts";
import { linksMeant, partsMeant } from "./select.ts";

export interface RunOptions {
  readonly plan: Plan;
  readonly cloud: ChaosCloud;
  /** Duration of each round, in place of the plan's. */
  readonly durationMs?: number | undefined;
  /** Decides which parts are killed and which servers are deleted, but not the order in which processes do things. */
  readonly seed: number;
  /** Breaks the run off when aborted: it rejects with the signal's reason, and the history so far is kept. */
  readonly signal: AbortSignal;
  /** Called with a function that describes the current state of the run at any time. */
  readonly onProgress?: (state: () => string) => void;
}

export interface RunResult {
  readonly passed: boolean;
  /** Broken laws, unmet expectations and findings of checkers, for people. */
  readonly failures: readonly string[];
  readonly rounds: readonly RoundFigures[];
  readonly history: readonly HistoryLine[];
  /** Descriptions of processes that ended without having been told to. */
  readonly deaths: readonly string[];
}

/** The run was broken off; the error contains the observations until then, and `cause` the reason. */
export class BrokenOffError extends Error {
  readonly code = "broken-off";
  readonly history: readonly HistoryLine[];

  constructor(history: readonly HistoryLine[], cause: unknown) {
    super(`interrupted: ${cause instanceof Error ? cause.message : cause}`, { cause });
    this.name = "BrokenOffError";
    this.history = history;
  }
}

/**
 * Carries out a plan on a cloud that serves: load and faults, then rest, then the audit of the six laws. Finally it deletes every server,
 * and nothing of them may be left. The cloud stays, and is whole. Throws a PlanError when the cloud lacks what the plan names or the round
 * is too long for it, and a BrokenOffError when the run could not be completed.
 */
export async function runPlan(options: RunOptions): Promise<RunResult> {
  const { plan, cloud, seed } = options;
  requireMeant(plan, cloud);
  requireFewFaults(plan, options.durationMs ?? plan.durationMs);
  const history = new ChaosHistory();
  const parts = cloud.parts.map(({ name }) => name);
  history.write({ who: "runner", what: "start", plan: plan.name, target: cloud.target, seed, parts });
  const api = new ChaosApi({
    urls: () => cloud.apiUrls,
    history,
    timeoutMs: plan.load.timeoutMs,
    signal: options.signal,
  });
  const watch = new DeathWatch(cloud, history);
  try {
    const { figures, failures, reports } = await runRounds(options, history, api);
    const died = watch.stop();
    for (const verdict of lawVerdicts(reports)) history.write({ who: "auditor", what: "verdict", ...verdict });
    const found = failuresOf(checkHistory(history.lines(), standardCheckers));
    const all = [...new Set([...died, ...failures, ...found])];
    history.write({ who: "runner", what: "end", passed: all.length === 0, failures: all });
    const deaths = cloud.deaths().map(({ part, words }) => `${part}: ${words}`);
    return { passed: all.length === 0, failures: all, rounds: figures, history: history.lines(), deaths };
  } catch (error) {
    throw new BrokenOffError(history.lines(), options.signal.aborted ? options.signal.reason : error);
  } finally {
    watch.stop();
    await api.close();
  }
}

async function runRounds(options: RunOptions, history: ChaosHistory, api: ChaosApi) {
  const { plan, cloud, seed, signal } = options;
  const flavors = await createFlavors(api);
  const random = seededRandom(seed);
  const figures: RoundFigures[] = [];
  const failures: string[] = [];
  const reports: AuditReport[] = [];
  const runId = randomUUID().slice(0, 8);
  let faultId = 0;
  for (const round of plan.rounds) {
    const run = new RoundRun({
      ...{ plan, round, cloud, api, history, random, flavors, signal },
      durationMs: options.durationMs ?? plan.durationMs,
      namePrefix: `chaos-${runId}-${figures.length + 1}`,
      nextFaultId: () => {
        faultId += 1;
        return faultId;
      },
    });
    options.onProgress?.(() => run.state);
    const done = await run.carryOut();
    figures.push(done.figures);
    reports.push(done.report);
    const label = round.name === "" ? "" : `${round.name}: `;
    const unclean = isClean(done.report) ? [] : ["the audit found violations"];
    failures.push(...[...unclean, ...done.failures].map((one) => `${label}${one}`));
  }
  return { figures, failures, reports };
}

function requireMeant(plan: Plan, cloud: ChaosCloud): void {
  for (const { target } of plan.rounds.flatMap(({ nemesis }) => nemesis)) {
    if (target.kind === "parts" && partsMeant(target.which, cloud.parts).length === 0) {
      throw new PlanError(`${plan.name}: target: this cloud has no ${target.which}`);
    }
    if (target.kind === "links" && linksMeant(target.from, target.to, cloud.links).length === 0) {
      throw new PlanError(`${plan.name}: target: this cloud has no link ${target.from} -> ${target.to}`);
    }
  }
}
