import type { PrepareOutcome } from "./driver.ts";

/**
 * The build of an agent that is being stopped: it does not end before the agent gives all builds up, which is after the journal is closed. So the
 * journal still has the build, and the agent's next process ends it with the reason that is true.
 */
export function leftBuild(signal: AbortSignal): Promise<PrepareOutcome> {
  const outcome: PrepareOutcome = { kind: "failed", failure: "reschedule", reason: "the agent was stopped" };
  if (signal.aborted) return Promise.resolve(outcome);
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(outcome), { once: true }));
}
