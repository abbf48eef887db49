import { setTimeout as delay } from "node:timers/promises";
import { preciseNow } from "../../runtime/clock.ts";
import type { ShownServer } from "./compute-client.ts";
import type { Outcomes } from "./outcomes.ts";

export interface OutcomePolls {
  readonly client: {
    showServer(uuid: string): Promise<ShownServer | null>;
    failedBuilds(uuid: string): Promise<number>;
  };
  readonly outcomes: Outcomes;
  readonly everyMs: number;
  /** Only servers that have been waited for so long are asked about. */
  readonly waitedMs: number;
  /** Servers of one round, asked side by side, oldest first. */
  readonly serversMax: number;
  readonly signal: AbortSignal;
}

/**
 * Asks the API about servers whose end is waited for: the only way with a cloud elsewhere, and for one in this process the
 * remedy when a word got lost. Resolves when `signal` is raised; rejects when the API fails.
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
