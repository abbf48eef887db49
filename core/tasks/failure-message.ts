/** What became of an earlier selection of a build. `skipped`: it had no room left, or was not connected, and was never called. */
export interface PastAttempt {
  readonly selection: number;
  readonly host: string;
  readonly result: "failed" | "skipped";
  readonly reason: string;
}

/** Longest reason of one host that goes into a message: drivers may hand over whole logs. */
const REASON_CHARS_MAX = 300;

/** Longest reason of one host that is kept as it came. */
const KEPT_CHARS_MAX = 10_000;

/**
 * A host's reason as it can be kept: drivers hand over what a device or a library said, and a database refuses some of that
 * (U+0000), which would leave the step that carries it unwritten for ever.
 */
export function keptReason(reason: string): string {
  const text = reason.length <= KEPT_CHARS_MAX ? reason : `${reason.slice(0, KEPT_CHARS_MAX - 1)}…`;
  return text.replace(/[^\P{Cc}\t\r\n]/gu, "\ufffd");
}

/** Why a build ended in ERROR when every host of its plan was used up, for the person who asked for the server. */
export function exhaustedBuildMessage(attempts: readonly PastAttempt[]): string {
  return `No valid host: ${listed(attempts)}`;
}

/** Why a build ended in ERROR without trying another host. */
export function abortedBuildMessage(past: readonly PastAttempt[], last: PastAttempt): string {
  const before = past.length === 0 ? "" : ` Tried before: ${listed(past)}.`;
  return `Build failed on ${last.host}: ${brief(last.reason)}. No other host was tried, since none could build it.${before}`;
}

function listed(attempts: readonly PastAttempt[]): string {
  return [...attempts]
    .sort((a, b) => a.selection - b.selection)
    .map((attempt) => `${attempt.host}: ${attempt.result === "skipped" ? "not tried, " : ""}${brief(attempt.reason)}`)
    .join("; ");
}

function brief(reason: string): string {
  const line = reason.replace(/\s+/g, " ").trim().replace(/\.+$/, "");
  if (line === "") return "no reason given";
  return line.length <= REASON_CHARS_MAX ? line : `${line.slice(0, REASON_CHARS_MAX - 1)}…`;
}
