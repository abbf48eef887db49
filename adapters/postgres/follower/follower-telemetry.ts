import { Gauge, type Registry } from "prom-client";
import type { LedgerView } from "../../../core/ledger/view.ts";
import { withDeadline } from "../../../runtime/deadline.ts";
import type { Logger } from "../../../runtime/logger.ts";
import type { FollowerEvents, LedgerFollower } from "./ledger-follower.ts";

/** A scrape must not hang on a cell that does not answer. */
const LAG_DEADLINE_MS = 1_000;

export interface WatchedFollower {
  readonly follower: LedgerFollower;
  readonly view: Pick<LedgerView, "providerCount" | "memoryBytes">;
}

/** One line in the log for each load and each loss. */
export function followerEvents(logger: Logger): FollowerEvents {
  return {
    loaded: (cell, { rows, tookMs }) => logger.info({ cell, rows, tookMs: Math.round(tookMs) }, "ledger view loaded"),
    lost: (cell, error, retryInMs) =>
      logger.warn({ cell, err: error, retryInMs }, "ledger view lost its cell, loading anew"),
  };
}

/** How far the views are behind and how big they are, measured at each scrape. */
export function registerFollowerMetrics(registry: Registry, followers: readonly WatchedFollower[]): void {
  const gauge = (
    name: string,
    help: string,
    readingOf: (watched: WatchedFollower) => Promise<number> | number,
  ): void => {
    new Gauge({
      name: `berth_view_${name}`,
      help,
      labelNames: ["cell"],
      registers: [registry],
      async collect() {
        const values = await Promise.all(
          followers.map(async (watched) => [watched.follower.cell, await readingOf(watched)] as const),
        );
        for (const [cell, value] of values) this.set({ cell }, value);
      },
    });
  };
  gauge("ready", "1 while the ledger view follows its cell", ({ follower }) => (follower.ready ? 1 : 0));
  gauge(
    "lag_bytes",
    "log of the cell's database that the view has not seen; NaN while the cell does not answer",
    lagBytesOf,
  );
  gauge(
    "lag_seconds",
    "commit to applied, of the last transaction",
    ({ follower }) => (follower.stats.lagMs ?? 0) / 1000,
  );
  gauge("providers", "resource providers in the view", ({ view }) => view.providerCount);
  gauge("memory_bytes", "memory that the view takes, about", ({ view }) => view.memoryBytes);
  gauge("transactions", "transactions applied so far", ({ follower }) => follower.stats.transactions);
  gauge(
    "loads",
    "full loads so far; each beyond the first followed a lost connection",
    ({ follower }) => follower.stats.loads,
  );
}

async function lagBytesOf({ follower }: WatchedFollower): Promise<number> {
  try {
    return (
      (await withDeadline(follower.measureLagBytes(), LAG_DEADLINE_MS, "asking for the log position")) ?? Number.NaN
    );
  } catch {
    return Number.NaN;
  }
}
