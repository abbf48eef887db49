import { type DestinationStream, destination, type Logger, pino } from "pino";

export type { Logger } from "pino";

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const SECRET_FIELDS = ["password", "token", "authorization", "x-auth-token", "x-subject-token", "cookie"];

/**
 * A logger that writes JSON lines to standard error (standard output is the command's own). Passwords in URLs, anywhere in a line, and
 * fields named for secrets are never shown.
 */
export function createLogger(options: {
  /** Name of the process, for example `api`. */
  readonly name: string;
  readonly level: LogLevel;
  /** Where to write; standard error by default. */
  readonly stream?: DestinationStream;
}): Logger {
  return pino(
    {
      name: options.name,
      level: options.level,
      base: { name: options.name },
      redact: {
        paths: SECRET_FIELDS.flatMap((name) => [`["${name}"]`, `*["${name}"]`]),
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
 * In a text that ends in @, matches a URL with a user and a password, from the scheme to the end. The scheme's length is bounded so that a
 * long text without a match is scanned only once.
 */
const URL_WITH_PASSWORD = /([a-z][a-z0-9+.-]{0,30}:\/\/[^:@]*):.+@$/i;
/** Separator between two URLs of one list. */
const NEXT_URL = /,(?=(?:nats|tls|postgres|postgresql|rediss?|https?):\/\/)/i;

/** Applies `hidePasswords` to each string of a line of JSON, so that no match extends beyond its own string. */
function hidePasswordsInJson(line: string): string {
  if (!line.includes("://")) return line;
  return line.replace(JSON_STRING, (literal) =>
    literal.includes("://") ? JSON.stringify(hidePasswords(JSON.parse(literal) as string)) : literal,
  );
}

/**
 * Removes the password of every `scheme://user:password@` in the text. A password may hold any character but white space, even those that a
 * URL should have encoded, so everything up to the last @ of a word is treated as the password: it is better to hide too much than too
 * little. Cost:
 * linear in the length of the text, which outsiders may choose.
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
