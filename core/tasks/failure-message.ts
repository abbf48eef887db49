import { withoutTrailing } from "../without-trailing.ts";

/** The result of an earlier selection of a build. `skipped`: the host had no room left or was not connected, and was never called. */
export interface PastAttempt {
  readonly selection: number;
  readonly host: string;
  readonly result: "failed" | "skipped";
  readonly reason: string;
}

/** The longest reason of one host in a message. Drivers may return whole logs. */
const REASON_CHARS_MAX = 300;

/** The longest reason of one host that is stored. */
const KEPT_CHARS_MAX = 10_000;

/**
 * A host's reason in a form that can be stored. Drivers pass on the text of a device or a library, and a database refuses some characters
 * (U+0000), which would prevent the step that contains the reason from ever being written.
 */
export function keptReason(reason: string): string {
  const text = reason.length <= KEPT_CHARS_MAX ? reason : `${reason.slice(0, KEPT_CHARS_MAX - 1)}…`;
  return text.replace(/[^\P{Cc}\t\r\n]/gu, "\ufffd");
}

/** Beginnings of the faults of builds whose attempts all failed. Owners of servers, replays and tests know them by "No valid host: ". */
const TOO_MANY = "No valid host: exceeded maximum number of retries.";
const USED_UP = "No valid host: exhausted all hosts of the build.";

/**
 * Why a build ended in ERROR although another host might have built it. `untried` are the hosts of the plan that were left when the number of attempts reached
 * its limit; null: there were no hosts left.
 */
export function exhaustedBuildMessage(attempts: readonly PastAttempt[], untried: readonly string[] | null): string {
  const failed = attempts.filter(({ result }) => result === "failed");
  const hosts = new Set(failed.map(({ host }) => host)).size;
  const counts =
    failed.length === 0 ? "None could be called" : `${many(failed.length, "attempt")} on ${many(hosts, "host")} failed`;
  const left = (untried ?? []).map((host) => `; ${host}: left untried`).join("");
  if (untried === null) return `${USED_UP} ${counts}, and no alternate is left: ${listed(attempts)}`;
  return `${TOO_MANY} ${counts}, and a build makes no more: ${listed(attempts)}${left}`;
}

/** Why a move was undone after every host of its plan was used up. */
export function exhaustedMoveMessage(attempts: readonly PastAttempt[]): string {
  return `No valid host: ${listed(attempts)}`;
}

/** What an operator can do about a server with this fault. Null for faults that say it themselves, or have no remedy of their own. */
export function nextStepAfter(fault: string, serverUuid: string): string | null {
  if (!fault.startsWith(TOO_MANY) && !fault.startsWith(USED_UP)) return null;
  const more = fault.startsWith(TOO_MANY)
    ? " (berth scheduler --max-attempts sets how many attempts a build may make)"
    : "";
  return (
    `See when and where each attempt failed: berth explain ${serverUuid}. Mend those hosts, or disable them (openstack compute service set --disable), ` +
    `then delete the server and create it again${more}.`
  );
}

/** Each host with its reason, of the fault of a build whose attempts all failed. Other faults are returned unchanged. */
export function attemptsIn(fault: string): string {
  const beginning = [TOO_MANY, USED_UP].find((one) => fault.startsWith(one));
  // The number of attempts, which follows the beginning, ends with the first colon.
  return beginning === undefined ? fault : fault.slice(fault.indexOf(": ", beginning.length) + 2);
}

const many = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Why a build ended in ERROR without trying another host. */
export function abortedBuildMessage(past: readonly PastAttempt[], last: PastAttempt): string {
  return `Build failed on ${last.host}: ${brief(last.reason)}. No other host was tried, because none could build it.${triedBefore(past)}`;
}

/** Why a build ended in ERROR although its guest was built: the guest must not run. */
export function refusedBuildMessage(past: readonly PastAttempt[], built: PastAttempt): string {
  return `Built on ${built.host} but not started: ${brief(built.reason)}.${triedBefore(past)}`;
}

const triedBefore = (past: readonly PastAttempt[]): string =>
  past.length === 0 ? "" : ` Tried before: ${listed(past)}.`;

function listed(attempts: readonly PastAttempt[]): string {
  return [...attempts]
    .sort((a, b) => a.selection - b.selection)
    .map((attempt) => `${attempt.host}: ${attempt.result === "skipped" ? "not tried, " : ""}${brief(attempt.reason)}`)
    .join("; ");
}

function brief(reason: string): string {
  const line = withoutTrailing(reason.replace(/\s+/g, " ").trim(), ".");
  if (line === "") return "no reason given";
  return line.length <= REASON_CHARS_MAX ? line : `${line.slice(0, REASON_CHARS_MAX - 1)}…`;
}
