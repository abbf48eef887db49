import { DeadlineError, withDeadline } from "./deadline.ts";
import { createLogger, LOG_LEVELS, type Logger } from "./logger.ts";
import { misspelledVariables } from "./misspelled-variables.ts";
import { readProcessSettings } from "./secret-files.ts";
import type { Service } from "./service.ts";
import { oneOf } from "./setting-kinds.ts";
import { type Declaration, type Setting, SettingsError, setting, type ValuesOf } from "./settings.ts";

/** Settings of every command that runs a service; spread them into the declaration. */
export const processSettings = {
  logLevel: setting(oneOf(...LOG_LEVELS), { about: "minimum level of log lines", default: "info" }),
};

/** The parts of `process` that running a service needs. */
export type ProcessPort = Pick<NodeJS.Process, "env" | "on" | "off"> & {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
};

export interface ServiceContext<Settings> {
  readonly settings: Settings;
  readonly logger: Logger;
  /** Reports an error after which the service cannot continue: the error is logged, the service is closed, and the process exits with 1. */
  readonly fail: (error: unknown) => void;
}

type ProcessDeclared = Readonly<Record<string, Setting<unknown>>> & typeof processSettings;

export interface ServiceRun<Settings extends ProcessDeclared> {
  /** Name of the service in the logs. */
  readonly name: string;
  readonly argv: readonly string[];
  readonly declaration: Declaration<Settings>;
  create(context: ServiceContext<ValuesOf<Settings>>): Service | Promise<Service>;
  /** Text to print after `ready`, for example the address that was bound. */
  readonly readyNote?: (service: Service) => string;
  /** A close that takes longer is cut short. 8,000 by default. */
  readonly closeDeadlineMs?: number;
}

/** Container engines kill processes that have not ended ten seconds after SIGTERM. This leaves time for the rest of the shutdown. */
const CLOSE_MS_MAX = 8_000;

type Ending =
  | { readonly kind: "signal"; readonly signal: string }
  | { readonly kind: "error"; readonly error: unknown };

/**
 * Runs a service from its settings to its close and resolves with the exit code: 0 after SIGTERM or SIGINT, 1 after an error
 * (logged once), 2 after a bad setting (a line for each on standard error). Prints `ready` once the service serves. A second signal
 * cuts the close short.
 */
export async function runService<Settings extends ProcessDeclared>(
  host: ProcessPort,
  run: ServiceRun<Settings>,
): Promise<number> {
  const context = readContext(host, run);
  if (typeof context === "number") return context;
  const { settings, logger } = context;
  const endings = listenForEndings(host);
  try {
    const created = (async () =>
      run.create({ settings, logger, fail: (error) => endings.end({ kind: "error", error }) }))();
    const service = await Promise.race([created, endings.first]);
    if ("kind" in service) return await finish(service, null, run, logger, endings.second);
    const early = await Promise.race([service.start(), endings.first]);
    if (early === undefined) host.stdout.write(`ready${run.readyNote ? ` ${run.readyNote(service)}` : ""}\n`);
    return await finish(await endings.first, service, run, logger, endings.second);
  } catch (error) {
    if (error instanceof SettingsError) {
      host.stderr.write(`${run.declaration.command}: ${error.message}\n`);
      return 2;
    }
    logger.fatal({ err: error }, whyNotStarted(error));
    return 1;
  } finally {
    endings.stop();
  }
}

/** Says what to do when another program has the address, which is the most common reason. */
export function whyNotStarted(error: unknown): string {
  const { code, address, port } = error as { code?: unknown; address?: unknown; port?: unknown };
  if (code !== "EADDRINUSE") return "the process could not start";
  return `the process could not start, because another program listens on ${address}:${port}: stop that program, or give this one another address`;
}

function readContext<Settings extends ProcessDeclared>(
  host: ProcessPort,
  run: ServiceRun<Settings>,
): number | { settings: ValuesOf<Settings>; logger: Logger } {
  try {
    const read = readProcessSettings(run.declaration, { argv: run.argv, env: host.env });
    if (read.kind === "help") {
      host.stdout.write(`${read.text}\n`);
      return 0;
    }
    const { logLevel } = read.settings as ValuesOf<typeof processSettings>;
    const logger = createLogger({ name: run.name, level: logLevel });
    for (const variable of misspelledVariables(run.declaration, host.env))
      logger.warn(
        { variable },
        "a variable of the environment is no setting of this service, and looks like a misspelled one",
      );
    return { settings: read.settings, logger };
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    host.stderr.write(`${run.declaration.command}: ${error.message}\n`);
    return 2;
  }
}

async function finish(
  ending: Ending,
  service: Service | null,
  run: { readonly closeDeadlineMs?: number },
  logger: Logger,
  secondEnding: Promise<Ending>,
): Promise<number> {
  if (ending.kind === "signal") logger.info({ signal: ending.signal }, "the process received a signal and is closing");
  else logger.fatal({ err: ending.error }, "the process met an unexpected error and is closing");
  try {
    const closed = withDeadline(service?.close() ?? Promise.resolve(), run.closeDeadlineMs ?? CLOSE_MS_MAX, "closing");
    const cut = await Promise.race([closed, secondEnding]);
    if (cut !== undefined) logger.warn("a second signal or error ended the process before it had closed");
    return tellEnd(ending, ending.kind === "signal" && cut === undefined ? 0 : 1, logger);
  } catch (error) {
    logger.error(
      { err: error },
      error instanceof DeadlineError ? "the process did not close in time" : "the process failed to close",
    );
    return tellEnd(ending, 1, logger);
  }
}

/** Logs the last line of a process: why it ends. */
function tellEnd(ending: Ending, exitCode: number, logger: Logger): number {
  if (ending.kind === "signal") logger.info({ exitCode }, `the process ended, as ${ending.signal} ordered`);
  else logger.fatal({ exitCode }, `the process ended because of an error: ${messageOf(ending.error)}`);
  return exitCode;
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message}` : String(error);

/** The first and the second reason to end. The second one only matters while the service closes because of the first. */
function listenForEndings(host: ProcessPort): {
  readonly first: Promise<Ending>;
  readonly second: Promise<Ending>;
  end(ending: Ending): void;
  stop(): void;
} {
  const first = Promise.withResolvers<Ending>();
  const second = Promise.withResolvers<Ending>();
  let ended = false;
  const end = (ending: Ending): void => {
    // A second error while closing is a consequence of the first; only an impatient user cuts the close short.
    if (!ended) first.resolve(ending);
    else if (ending.kind === "signal") second.resolve(ending);
    ended = true;
  };
  const onSignal = (signal: string): void => end({ kind: "signal", signal });
  const onError = (error: unknown): void => end({ kind: "error", error });
  const signals = ["SIGTERM", "SIGINT"] as const;
  for (const signal of signals) host.on(signal, onSignal);
  for (const event of ["uncaughtException", "unhandledRejection"] as const)
    host.on(event as "uncaughtException", onError);
  return {
    first: first.promise,
    second: second.promise,
    end,
    stop: () => {
      for (const signal of signals) host.off(signal, onSignal);
      for (const event of ["uncaughtException", "unhandledRejection"] as const) host.off(event, onError);
    },
  };
}
