/** What became of an earlier selection of a build. `skipped`: it had no room left, so it was never called. */
export interface PastAttempt {
  readonly selection: number;
  readonly host: string;
  readonly result: "failed" | "skipped";
  readonly reason: string;
}

/** Longest reason of one host that goes into a message: drivers may hand over whole logs. */
const REASON_CHARS_MAX = 300;

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
