import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { postgresUrl } from "../adapters/postgres/client/postgres-url.ts";
import { isClean } from "../audit/audit-report.ts";
import { auditText } from "../audit/print-report.ts";
import { startEmbeddedTarget } from "../replay/embedded-target.ts";
import { externalTarget } from "../replay/external-target.ts";
import { readTrace } from "../replay/read-trace.ts";
import { resultOf, resultTable } from "../replay/result.ts";
import { type ReplayEnd, runReplay } from "../replay/run-replay.ts";
import type { ReplayTarget } from "../replay/target.ts";
import { type Trace, TraceError } from "../replay/trace.ts";
import { createLogger, LOG_LEVELS } from "../runtime/logger.ts";
import { boolean, directory, float, integer, type Kind, oneOf, text, url } from "../runtime/setting-kinds.ts";
import { optional, SettingsError, setting, type ValuesOf } from "../runtime/settings.ts";
import { runCommand } from "./run-command.ts";

const speed: Kind<number | "max"> = {
  allowed: "max, or the number of seconds of the trace in one second",
  placeholder: "max|N",
  parse: (given) => (given === "max" ? "max" : float({ min: 0.001, max: 1e9 }).parse(given)),
};

export const replaySettings = {
  cells: setting(integer({ min: 1, max: 20 }), {
    about: "number of cells over which the machines are distributed",
    default: "3",
  }),
  fail: setting(float({ min: 0, max: 1 }), {
    about: "share of the builds that fail on their first host",
    default: "0",
  }),
  schedulers: setting(integer({ min: 1, max: 16 }), { about: "schedulers", default: "2" }),
  conductors: setting(integer({ min: 1, max: 16 }), { about: "conductors of each cell", default: "1" }),
  speed: setting(speed, { about: "speed of the replay", default: "max" }),
  json: optional(text(), { about: "file for the result as one JSON object" }),
  keep: setting(boolean, { about: "delete nothing", default: "false" }),
  limit: optional(integer({ min: 1, max: 10_000_000 }), { about: "only the first N tasks of the file" }),
  hostsFile: optional(text(), { about: "name of the file of machines" }),
  tasksFile: optional(text(), { about: "name of the file of tasks" }),
  inFlight: setting(integer({ min: 1, max: 10_000 }), {
    about: "maximum number of creates and deletes in flight",
    default: "512",
  }),
  seed: setting(integer({ min: 0, max: 2_147_483_647 }), {
    about: "seed that selects the builds that fail",
    default: "1",
  }),
  api: optional(url("http", "https"), {
    about: "use the cloud with this Compute API instead of one in this process",
  }),
  databaseUrl: optional(postgresUrl, {
    about: "the API database: for the cloud in this process, instead of the embedded one; with --api, for the audit",
  }),
  dataDir: optional(directory, { about: "data directory of the embedded Postgres; by default a temporary one" }),
  logLevel: setting(oneOf(...LOG_LEVELS), { about: "minimum level of log lines", default: "fatal" }),
};
export type ReplaySettings = ValuesOf<typeof replaySettings>;

const declaration = {
  command: "berth replay",
  about:
    "Boots the machines of a trace as hosts and creates and deletes its tasks through the public API, then audits the six laws. With --place-only (which has its own --help) it only places tasks, in memory.",
  positionals: ["TRACE_DIR"],
  settings: replaySettings,
};

/** `berth replay TRACE_DIR`: exit code 1 if the audit finds anything, 2 if the trace has a bad line. */
export function runReplayCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings, [directory = ""]) => {
    const trace = readWholeTrace(directory, settings);
    return replayTrace(trace, settings);
  });
}

function readWholeTrace(directory: string, settings: ReplaySettings): Trace {
  try {
    const { machines, tasks } = readTrace(directory, { hosts: settings.hostsFile, tasks: settings.tasksFile });
    return { machines, tasks: settings.limit === null ? tasks : tasks.slice(0, settings.limit) };
  } catch (error) {
    if (error instanceof TraceError) throw new SettingsError(error.message);
    throw error;
  }
}

/** The additional output of a replay in this process. */
export interface ReplayShow {
  /** Whether the cloud shows its dashboard. */
  readonly dashboard?: boolean;
  /** Whether the cloud stays after the replay, until the command is interrupted. */
  readonly stay?: boolean;
}

/** Replays a trace that has been read, prints the table and the audit, and resolves with the exit code. */
export async function replayTrace(trace: Trace, settings: ReplaySettings & ReplayShow): Promise<number> {
  const stop = new AbortController();
  const interrupt = (): void => stop.abort(new Error("interrupted"));
  process.once("SIGINT", interrupt);
  process.once("SIGTERM", interrupt);
  try {
    const target = await startTarget(trace, settings, stop);
    try {
      process.stderr.write(
        `${trace.tasks.length} tasks on ${trace.machines.length} machines, ${target.apiUrl}${settings.dashboard === true ? "/dashboard shows it" : ""}\n`,
      );
      const end = await runReplay({
        trace,
        target,
        fail: settings.fail,
        seed: settings.seed,
        speed: settings.speed === "max" ? null : settings.speed,
        keep: settings.keep,
        inFlightMax: settings.inFlight,
        // In one process no event gets lost, so polling is needed only rarely.
        polls:
          settings.api === null
            ? { everyMs: 1_000, waitedMs: 5_000, serversMax: 20 }
            : { everyMs: 50, waitedMs: 0, serversMax: 100 },
        output: process.stderr,
        signal: stop.signal,
      });
      const exitCode = tell(end, settings);
      if (settings.stay === true) await stayUntil(stop.signal, target.apiUrl);
      return exitCode;
    } finally {
      await target.close();
    }
  } finally {
    process.off("SIGINT", interrupt);
    process.off("SIGTERM", interrupt);
  }
}

async function stayUntil(signal: AbortSignal, apiUrl: string): Promise<void> {
  process.stdout.write(`\nThe cloud keeps running. Its dashboard: ${apiUrl}/dashboard (Ctrl-C ends it)\n`);
  if (!signal.aborted) await once(signal, "abort");
}

async function startTarget(
  trace: Trace,
  settings: ReplaySettings & ReplayShow,
  stop: AbortController,
): Promise<ReplayTarget> {
  if (settings.api !== null) return externalTarget({ apiUrl: settings.api, databaseUrl: settings.databaseUrl });
  return startEmbeddedTarget({
    ...settings,
    stay: settings.stay ?? false,
    machines: trace.machines,
    logger: createLogger({ name: "replay", level: settings.logLevel }),
    fail: (error) => stop.abort(error),
  });
}

function tell({ tally, claims, audit }: ReplayEnd, settings: ReplaySettings): number {
  const result = resultOf(tally, claims, audit?.violations ?? null);
  process.stdout.write(`\n${resultTable(result, tally)}\n\n`);
  process.stdout.write(`${audit === null ? "not audited: this needs --database-url, too" : auditText(audit)}\n`);
  if (settings.json !== null) writeFileSync(settings.json, `${JSON.stringify(result, null, 2)}\n`);
  return audit === null || isClean(audit) ? 0 : 1;
}
