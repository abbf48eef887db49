import type { Clock } from "../../../../runtime/clock.ts";
import { Ticker } from "../../../../runtime/ticker.ts";
import type { ServerVolumes } from "../server-volumes/server-volumes.ts";

/** How long a call says of its volumes that it still wants them. After that it may have them taken back, as if its process had ended. */
export const HOLD_MS_MAX = 30 * 60_000;

/**
 * Runs `work`, and says every `renewMs` that the volumes which are reserved for these new servers are still wanted, so that no settler gives them back and
 * closes the servers' UUIDs while Cinder is slow. If this process dies, nobody says so any longer. What the database does not take is said again the
 * next time.
 */
export async function holdVolumes<Result>(
  store: Pick<ServerVolumes, "renewReserved"> | null,
  serverUuids: readonly string[],
  { clock, renewMs }: { readonly clock: Clock; readonly renewMs: number },
  work: () => Promise<Result>,
): Promise<Result> {
  if (store === null || serverUuids.length === 0) return work();
  const untilMs = clock.monotonic() + HOLD_MS_MAX;
  const ticker = new Ticker({
    clock,
    pauseMs: renewMs,
    work: async () => {
      if (clock.monotonic() < untilMs) await store.renewReserved(serverUuids);
    },
    onError: () => undefined,
  });
  ticker.start();
  try {
    return await work();
  } finally {
    await ticker.stop();
  }
}
