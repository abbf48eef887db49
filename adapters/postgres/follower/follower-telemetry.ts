import { Gauge, type Registry } from "prom-client";
import type { LedgerView } from "../../../core/ledger/ledger-view.ts";
import { withDeadline } from "../../../runtime/deadline.ts";
import type { Logger } from "../../../runtime/logger.ts";
import type { FollowerEvents, LedgerFollower } from "./ledger-follower.ts";

/** Limits how long a scrape waits for a cell that does not answer. */
const LAG_DEADLINE_MS = 1_000;

export interface WatchedFollower {
  readonly follower: LedgerFollower;
  readonly view: Pick<LedgerView, "providerCount" | "memoryBytes">;
}

/**
 * One line for each view that does not follow its cell, with the reason. The reason may name database sessions and their queries, so it is
 * only for operators: for the `/readyz` of an address that clients do not reach.
 */
export function describeObstacles(followers: readonly Pick<WatchedFollower, "follower">[]): readonly string[] {
  return followers.flatMap(({ follower: { cell, obstacle } }) =>
    obstacle === null
      ? []
      : [`no servers are placed in cell ${cell}, because its ledger view does not follow it: ${obstacle}`],
  );
}

/** The same for an address that clients reach. It only says how many views there are. */
export function countObstacles(followers: readonly Pick<WatchedFollower, "follower">[]): readonly string[] {
  const count = followers.filter(({ follower }) => follower.obstacle !== null).length;
  if (count === 0) return [];
  return [
    `no servers are placed in ${count} of ${followers.length} cells, because their ledger views do not follow them: /readyz at the address of /metrics says why`,
  ];
}

/** How often the log repeats that the same load is waiting. */
const WAITING_LOG_MS = 30_000;

/** Logs one line for each load and each loss, and now and then one for a load that waits. */
export function followerEvents(logger: Logger): FollowerEvents {
  let toldAtMs = Number.NEGATIVE_INFINITY;
  return {
    waiting: (cell, holders) => {
      const nowMs = performance.now();
      if (nowMs - toldAtMs < WAITING_LOG_MS) return;
      toldAtMs = nowMs;
      logger.warn(
        { cell, holders },
        "the ledger view cannot load yet, because Postgres creates a replication slot only when all older transactions of the whole server have ended: end the transactions in `holders` if they stay open",
      );
    },
    handlerFailed: (cell, error) =>
      logger.error(
        { cell, err: error },
        "what follows from a transaction that the ledger view shows could not be done",
      ),
    loaded: (cell, { rows, tookMs }) =>
      logger.info({ cell, rows, tookMs: Math.round(tookMs) }, "the ledger view has been loaded"),
    lost: (cell, error, retryInMs) =>
      logger.warn(
        { cell, err: error, retryInMs },
        "the ledger view lost its connection to the cell's database and is loading again",
      ),
  };
}

/** Registers how far the views are behind and how large they are, measured at each scrape. */
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
    "bytes of the log of the cell's database that the view has not read; NaN while the cell does not answer",
    lagBytesOf,
  );
  gauge(
    "lag_seconds",
    "seconds between the commit and the application of the last transaction",
    ({ follower }) => (follower.stats.lagMs ?? 0) / 1000,
  );
  gauge("providers", "resource providers in the view", ({ view }) => view.providerCount);
  gauge("memory_bytes", "approximate memory of the view", ({ view }) => view.memoryBytes);
  gauge("transactions", "transactions applied so far", ({ follower }) => follower.stats.transactions);
  gauge(
    "loads",
    "full loads so far; each one after the first followed a lost connection",
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
