import { resolve } from "node:path";
import { LocalTarget } from "./local/local-target.ts";
import type { CloudShape } from "./plan.ts";

// The exports of `berth/chaos`: see docs/chaos.md.

export type { FilteredCell, HostCheck, HostFilter } from "../core/scheduling/filters/host-filter.ts";
export type { HostAggregate, HostFacts, ServerOnHost } from "../core/scheduling/host-facts.ts";
export type { ServerSpec } from "../proto/gen/berth/shared.ts";
export type { FakeScript } from "../services/compute-agent/fake-script.ts";
export { generateHosts, type HostConfig } from "../services/compute-agent/host-config.ts";
export type { ChaosCloud, Link, Part } from "./chaos-cloud.ts";
export { acceptedCreatesEnd } from "./checkers/accepted-creates-end.ts";
export { allOrNothing } from "./checkers/all-or-nothing.ts";
export {
  type Checker,
  type CheckOutcome,
  type CheckResult,
  checkHistory,
  type Finding,
  failuresOf,
  outcomeOf,
} from "./checkers/checker.ts";
export { deletedStaysDeleted } from "./checkers/deleted-stays-deleted.ts";
export { lawsHold } from "./checkers/laws-hold.ts";
export { noServerTwice } from "./checkers/no-server-twice.ts";
export { nothingLost } from "./checkers/nothing-lost.ts";
export { standardCheckers } from "./checkers/standard-checkers.ts";
export { timeWithoutService } from "./checkers/time-without-service.ts";
export type { HistoryLine } from "./history-line.ts";
export { disablingHosts } from "./kit/disabling-hosts.ts";
export * from "./kit/generators.ts";
export { InProcessCloud, type InProcessOptions } from "./kit/in-process-cloud.ts";
export {
  type FaultSpec,
  failingBuilds,
  faults,
  type Nemesis,
  type NemesisStage,
  repeatedly,
  together,
} from "./kit/nemesis.ts";
export { runSuite } from "./kit/run-suite.ts";
export type { Suite, SuiteCloud, SuiteResult, SuiteServer } from "./kit/suite.ts";
export type { Plan } from "./plan.ts";
export { parsePlan, readPlan } from "./read-plan.ts";
export { type ChaosFigures, figuresOf } from "./report/figures.ts";
export { figuresText } from "./report/print-figures.ts";
export { readHistory } from "./report/read-history.ts";
export { renderReport } from "./report/render-report.ts";
export { type RunOptions, type RunResult, runPlan } from "./run-plan.ts";

const SHAPE: CloudShape = {
  ...{ cells: 2, apis: 1, schedulers: 2, conductors: 2, agents: 2, hosts: 3, standbys: false },
};

/**
 * Starts a cloud of separate processes on this machine, all of which can be killed, paused and cut off (see `faults`). Needs nats-server
 * and redis-server. `filters` are files of modules with custom host filters, which every scheduler loads. The cloud ends with this process
 * at the latest.
 */
export function startProcesses(
  options: Partial<CloudShape> & { readonly filters?: readonly string[] } = {},
): Promise<LocalTarget> {
  const { filters = [], ...shape } = options;
  const env = filters.length === 0 ? {} : { BERTH_FILTERS: filters.map((file) => resolve(file)).join(",") };
  return LocalTarget.start({ ...SHAPE, ...shape }, { env });
}
