import { setTimeout as delay } from "node:timers/promises";
import { preciseNow } from "../runtime/clock.ts";
import type { ShownServer } from "./compute-client.ts";
import type { Outcomes } from "./outcomes.ts";

export interface OutcomePolls {
  readonly client: {
    showServer(uuid: string): Promise<ShownServer | null>;
    failedBuilds(uuid: string): Promise<number>;
  };
  readonly outcomes: Outcomes;
  readonly everyMs: number;
  /** Only servers that have been waited for at least this long are polled. */
  readonly waitedMs: number;
  /** Maximum number of servers polled in parallel in one round, oldest first. */
  readonly serversMax: number;
  readonly signal: AbortSignal;
}

/**
 * Polls the API for servers whose outcomes are awaited. This is the only way for a cloud elsewhere; for one in this process it recovers
 * lost events. Resolves when `signal` is aborted, and rejects when the API fails.
 */
export async function pollOutcomes(polls: OutcomePolls): Promise<void> {
  const { client, outcomes, signal } = polls;
  while (!signal.aborted) {
    await delay(polls.everyMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    const uuids = outcomes.waitingSince(preciseNow() - polls.waitedMs, polls.serversMax);
    await Promise.all(
      uuids.map(async (uuid) => {
        const server = await client.showServer(uuid);
        if (server === null || (server.status !== "ACTIVE" && server.status !== "ERROR")) return;
        const failedAttempts = await client.failedBuilds(uuid);
        const atMs = server.launchedAtMs ?? preciseNow();
        if (server.status === "ACTIVE") outcomes.tell(uuid, { kind: "active", atMs, failedAttempts });
        else outcomes.tell(uuid, { kind: "error", atMs, failedAttempts, reason: server.fault ?? "" });
      }),
    );
  }
}
