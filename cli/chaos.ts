import { accessSync, constants, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { ChaosCloud } from "../chaos/chaos-cloud.ts";
import { ComposeTarget } from "../chaos/compose/compose-target.ts";
import type { HistoryLine } from "../chaos/history-line.ts";
import { LocalTarget } from "../chaos/local/local-target.ts";
import type { Plan } from "../chaos/plan.ts";
import { roundsTable } from "../chaos/print-rounds.ts";
import { PlanError, planNames, readPlan } from "../chaos/read-plan.ts";
import { renderReport } from "../chaos/report/render-report.ts";
import { BrokenOffError, type RunResult, runPlan } from "../chaos/run-plan.ts";
import { LiveLine } from "../runtime/live-line.ts";
import { duration, integer, oneOf, text } from "../runtime/setting-kinds.ts";
import { optional, SettingsError, setting, type ValuesOf } from "../runtime/settings.ts";
import { runCommand } from "./run-command.ts";

const declaration = {
  command: "berth chaos",
  about:
    "Sends requests through the public API while it breaks real processes, waits until they have settled, and audits.",
  settings: {
    plan: setting(text(), { about: `a file, or one of: ${planNames().join(", ")}` }),
    duration: optional(duration({ minMs: 1_000, maxMs: 86_400_000 }), {
      about: "how long load and faults of each round last; by default as the plan says",
    }),
    target: setting(oneOf("local", "compose"), {
      about: "its own processes, or the containers of a running deployment",
      default: "local",
    }),
    seed: optional(integer({ min: 0, max: 2 ** 31 }), {
      about: "selects the targets of faults; by default it is drawn and printed",
    }),
    project: setting(text(), { about: "with --target compose: Compose's name of the deployment", default: "deploy" }),
    composeFile: setting(text(), {
      about: "with --target compose: its file",
      default: "deploy/compose.yaml",
    }),
    history: optional(text(), { about: "file for the history, as JSON lines" }),
    report: optional(text(), { about: "file for the report, as HTML" }),
    json: optional(text(), { about: "file for the figures as one JSON object" }),
  },
} as const;
type Settings = ValuesOf<typeof declaration.settings>;

/** `berth chaos`: exit code 0 when all laws and expectations held, 1 when one did not or the run was broken off, 2 after a bad plan. */
export function runChaosCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings) => {
    const plan = planOf(settings);
    requireFolders(settings);
    const ending = new AbortController();
    const end = () => ending.abort(new Error("interrupted"));
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, end);
    try {
      return await runOn(plan, settings, ending.signal);
    } catch (error) {
      if (error instanceof PlanError) throw new SettingsError(error.message);
      throw error;
    } finally {
      for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, end);
    }
  });
}

function planOf({ plan }: Settings): Plan {
  try {
    return readPlan(plan);
  } catch (error) {
    if (error instanceof PlanError) throw new SettingsError(error.message);
    throw error;
  }
}

/** Checked before the run, so that the results of a long run are not lost because their folder does not exist. */
function requireFolders({ history, report, json }: Settings): void {
  for (const file of [history, report, json]) {
    if (file === null) continue;
    try {
      accessSync(dirname(file), constants.W_OK);
    } catch (error) {
      throw new SettingsError(`${file} cannot be written: ${(error as Error).message}`);
    }
  }
}

async function runOn(plan: Plan, settings: Settings, signal: AbortSignal): Promise<number> {
  const seed = settings.seed ?? Math.floor(Math.random() * 2 ** 31);
  process.stderr.write(`${plan.name}, seed ${seed}: ${plan.about}\n`);
  if (settings.target === "local") process.stderr.write(`starting a cloud of ${plan.cloud.cells} cells\n`);
  const cloud = await openTarget(plan, settings);
  let state = () => "";
  const live = new LiveLine(
    process.stderr,
    (seconds) => `${seconds.toFixed(1).padStart(6)} s  ${state()}`,
    () => performance.now(),
  );
  live.start();
  try {
    const onProgress = (tell: () => string) => {
      state = tell;
    };
    const result = await runPlan({ plan, cloud, seed, signal, onProgress, durationMs: settings.duration ?? undefined });
    live.stop();
    return await tell(result, settings, cloud);
  } catch (error) {
    live.stop();
    if (!(error instanceof BrokenOffError)) throw error;
    write(settings, error.history);
    process.stderr.write(`berth chaos: ${error.message}\n`);
    return 1;
  } finally {
    await cloud.close();
  }
}

function openTarget(plan: Plan, { target, project, composeFile }: Settings): Promise<ChaosCloud> {
  if (target === "compose") return ComposeTarget.open({ project, file: composeFile });
  return LocalTarget.start(plan.cloud);
}

async function tell(result: RunResult, settings: Settings, cloud: ChaosCloud): Promise<number> {
  write(settings, result.history);
  const { history: _, ...figures } = result;
  if (settings.json !== null)
    writeFileSync(settings.json, `${JSON.stringify({ plan: settings.plan, ...figures }, null, 2)}\n`);
  process.stdout.write(`${roundsTable(result.rounds)}${deathsText(result.deaths)}`);
  if (result.passed) {
    process.stdout.write("passed: all laws held, and no server was lost or left over\n");
    return 0;
  }
  for (const { part, text: lines } of await cloud.logs()) process.stderr.write(`--- ${part}\n${lines}\n`);
  process.stdout.write(`FAILED:\n${result.failures.map((failure) => `  ${failure}\n`).join("")}`);
  return 1;
}

function deathsText(deaths: readonly string[]): string {
  if (deaths.length === 0) return "";
  return `ended on their own and were restarted:\n${deaths.map((death) => `  ${death}\n`).join("")}`;
}

function write(settings: Settings, history: readonly HistoryLine[]): void {
  if (settings.history !== null) {
    writeFileSync(settings.history, history.map((line) => `${JSON.stringify(line)}\n`).join(""));
  }
  if (settings.report !== null) writeFileSync(settings.report, renderReport(history));
}
