import { setTimeout as delay } from "node:timers/promises";
import { withClient } from "../adapters/postgres/client/databases.ts";
import { auditTwice } from "../audit/audit-twice.ts";
import { conductorSettingNames } from "../audit/conductor-setting-names.ts";
import { startCloud } from "../cloud/embedded-cloud.ts";
import type { CloudObserver } from "../cloud/observe-stores.ts";
import { preciseNow } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import { dealToCells, hostOf } from "./map-machines.ts";
import { Outcomes } from "./outcomes.ts";
import { AUDIT_PAUSE_MS, type ReplayTarget } from "./target.ts";
import type { Machine } from "./trace.ts";

export interface EmbeddedTargetOptions {
  readonly machines: readonly Machine[];
  readonly cells: number;
  readonly schedulers: number;
  readonly conductors: number;
  readonly databaseUrl: string | null;
  /** Null for a temporary directory. */
  readonly dataDir: string | null;
  readonly logger: Logger;
  /** Whether the cloud shows its dashboard. */
  readonly dashboard?: boolean;
  /** Whether the cloud stays after the replay. Its dashboard can break it then, and it is not made for the greatest load. */
  readonly stay?: boolean;
  readonly fail: (error: unknown) => void;
}

/** Boots the machines as hosts of a cloud in this process, which reports each outcome with the time of its commit. */
export async function startEmbeddedTarget(options: EmbeddedTargetOptions): Promise<ReplayTarget> {
  const outcomes = new Outcomes();
  const observer = new OutcomeObserver(outcomes);
  const dealt = dealToCells(options.machines, options.cells);
  const cloud = await startCloud({
    ...options,
    cells: dealt.map((machines, index) => ({ name: `cell-${index + 1}`, hosts: machines.map(hostOf) })),
    listen: { host: "127.0.0.1", port: 0 },
    observer,
    underLoad: options.stay !== true,
  });
  const cells = cloud.cells.map(({ databaseUrl }) => databaseUrl);
  return {
    apiUrl: cloud.apiUrl,
    isHere: true,
    outcomes,
    claims: () => observer.claims,
    settle: async () => {
      // A deletion is accepted before its task is in a cell. If the cell did not answer in time, a sweep passes the deletion on some seconds later.
      await untilNone([cloud.databaseUrl], "select from open_requests where state = 'cancelled' limit 1");
      await untilNone(cells, "select from tasks where outcome is null limit 1");
    },
    audit: () =>
      auditTwice({
        apiUrl: cloud.databaseUrl,
        cells: cloud.cells,
        pauseMs: AUDIT_PAUSE_MS,
        // Everything has ended, so whatever is left over is lost.
        patienceMs: 0,
        conductorSettings: conductorSettingNames,
      }),
    close: () => cloud.close(),
  };
}

const SETTLE_MS = 60_000;
const SETTLE_POLL_MS = 100;

/** Waits until the query finds no row in any of the databases, for a minute at most: the audit then says what is left. */
async function untilNone(databaseUrls: readonly string[], query: string): Promise<void> {
  const deadline = preciseNow() + SETTLE_MS;
  for (const databaseUrl of databaseUrls) {
    await withClient(databaseUrl, async (client) => {
      const isOpen = async (): Promise<boolean> => ((await client.query(query)).rowCount ?? 0) > 0;
      while ((await isOpen()) && preciseNow() < deadline) await delay(SETTLE_POLL_MS);
    });
  }
}

class OutcomeObserver implements CloudObserver {
  claims = 0;
  readonly #outcomes: Outcomes;
  readonly #failedAttempts = new Map<string, number>();

  constructor(outcomes: Outcomes) {
    this.#outcomes = outcomes;
  }

  claimed(claims: number): void {
    this.claims += claims;
  }

  attemptFailed(serverUuid: string): void {
    this.#failedAttempts.set(serverUuid, (this.#failedAttempts.get(serverUuid) ?? 0) + 1);
  }

  active(serverUuid: string, atMs: number): void {
    this.#outcomes.tell(serverUuid, { kind: "active", atMs, failedAttempts: this.#take(serverUuid) });
  }

  failed(serverUuid: string, reason: string, atMs: number): void {
    this.#outcomes.tell(serverUuid, {
      kind: "error",
      atMs,
      failedAttempts: this.#take(serverUuid),
      reason,
    });
  }

  #take(serverUuid: string): number {
    const failed = this.#failedAttempts.get(serverUuid) ?? 0;
    this.#failedAttempts.delete(serverUuid);
    return failed;
  }
}
