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
      hooks: { streamWrite: hidePasswordsInJson },
    },
    options.stream ?? destination({ fd: 2, sync: true }),
  );
}

/** A string in JSON, with its quotes. */
const JSON_STRING = /"(?:[^"\\]|\\.)*"/g;
/**
 * In a text that ends in @, a URL with a user and a password: from the scheme up to the end. The scheme has a bound, so that a long text
 * without any is looked through once.
 */
const URL_WITH_PASSWORD = /([a-z][a-z0-9+.-]{0,30}:\/\/[^:@]*):.+@$/i;
/** Between two URLs of one list. */
const NEXT_URL = /,(?=(?:nats|tls|postgres|postgresql|rediss?|https?):\/\/)/i;

/** `hidePasswords` for each string of a line of JSON, so that none reaches beyond its own. */
function hidePasswordsInJson(line: string): string {
  if (!line.includes("://")) return line;
  return line.replace(JSON_STRING, (literal) =>
    literal.includes("://") ? JSON.stringify(hidePasswords(JSON.parse(literal) as string)) : literal,
  );
}

/**
 * The same text with every `scheme://user:password@` without its password. A password may hold any sign but white space, also
 * those that a URL should have encoded, so all up to the last @ of a word is taken for it: rather too much is hidden than too little.
 * Cost: grows with the length of the text alone, which others may choose.
 */
export function hidePasswords(text: string): string {
  if (!text.includes("://")) return text;
  return text
    .split(NEXT_URL)
    .map((part) => part.replace(/\S+/g, hidePasswordOfWord))
    .join(",");
}

function hidePasswordOfWord(word: string): string {
  const end = word.lastIndexOf("@") + 1;
  return word.slice(0, end).replace(URL_WITH_PASSWORD, "$1:[redacted]@") + word.slice(end);
}
