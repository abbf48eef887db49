import { type DestinationStream, destination, type Logger, pino } from "pino";

export type { Logger } from "pino";

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * A logger that writes JSON lines to standard error (standard output is the command's own). Passwords in URLs, wherever in a
 * line, and fields named for secrets never get out.
 */
export function createLogger(options: {
  /** Which process it is, for example `api`. */
  readonly name: string;
  readonly level: LogLevel;
  /** Standard error unless given. */
  readonly stream?: DestinationStream;
}): Logger {
  return pino(
    {
      name: options.name,
      level: options.level,
      base: { name: options.name },
      redact: {
        paths: ["password", "*.password", "token", "*.token", "authorization", "*.authorization"],
        censor: "[redacted]",
      },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: hidePasswords },
    },
    options.stream ?? destination({ fd: 2, sync: true }),
  );
}

/** The same text with every `scheme://user:password@` without its password. */
export function hidePasswords(line: string): string {
  if (!line.includes("://")) return line;
  return line.replace(/(\b[a-z][a-z0-9+.-]*:\/\/[^\s:@/"\\]*):[^\s@/"\\]+@/gi, "$1:[redacted]@");
}
