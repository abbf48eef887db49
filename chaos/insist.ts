import { setTimeout as delay } from "node:timers/promises";
import type { ChaosApi, RequestOutcome } from "./chaos-api.ts";

const TRIES_MAX = 20;
const RETRY_MS = 500;

/** The API failed a request that every run depends on. */
export class NotServedError extends Error {
  readonly code = "not-served";

  constructor(message: string) {
    super(message);
    this.name = "NotServedError";
  }
}

/**
 * Repeats a request until the API carries it out. Throws a NotServedError when the API refuses, or does not answer twenty times in a row.
 */
export async function insist(
  api: ChaosApi,
  ask: () => Promise<RequestOutcome>,
): Promise<Extract<RequestOutcome, { readonly kind: "ok" }>> {
  for (let tries = 1; ; tries += 1) {
    const answer = await ask();
    if (answer.kind === "ok") return answer;
    if (tries === TRIES_MAX || (answer.kind === "refused" && answer.status !== 0)) {
      throw new NotServedError(`the API did not answer a call as it must: ${answer.status ?? ""} ${answer.reason}`);
    }
    api.throwIfBrokenOff();
    await delay(RETRY_MS);
  }
}
