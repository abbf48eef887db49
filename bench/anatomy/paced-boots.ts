import { setTimeout as delay } from "node:timers/promises";
import { withClient } from "../../adapters/postgres/client/databases.ts";
import { seededRandom } from "../../core/scheduling/seeded-random.ts";
import { preciseNow } from "../../runtime/clock.ts";
import { type MeasuredCloud, usedPer } from "./measured-cloud.ts";

/** What boots took while others were under way: milliseconds from the POST of each server to its ACTIVE, in ascending order. */
export interface PacedBoots {
  readonly activeMs: readonly number[];
  /** CPU milliseconds of a boot and its delete, of all processes. */
  readonly cpuMs: number;
}

/**
 * Boots `servers` servers at `perSecond` on average, at random intervals as independent users have them (a Poisson process), whether or not
 * the former ones have ended, and deletes them the same way. A server counts as ACTIVE from the time in its `launched_at`, at which the transaction began that
 * made it ACTIVE: what that transaction and its commit take is not in the figures.
 */
export async function measurePacedBoots(
  cloud: MeasuredCloud,
  { perSecond, servers, seed }: { readonly perSecond: number; readonly servers: number; readonly seed: number },
): Promise<PacedBoots> {
  const random = seededRandom(seed);
  const pause = (): number => (-Math.log(1 - random()) * 1_000) / perSecond;
  const before = await cloud.usage();
  const posted = new Map<string, number>();
  await atPace(Array.from({ length: servers }), pause, async () => {
    const at = preciseNow();
    posted.set(await cloud.boot(), at);
  });
  await cloud.untilActive([...posted.keys()]);
  const activeMs = await withClient(cloud.databaseUrl, async (client) => {
    const { rows } = await client.query<{ uuid: string; at: number }>(
      "select uuid, extract(epoch from launched_at)::float8 * 1000 as at from servers where uuid = any ($1::uuid[])",
      [[...posted.keys()]],
    );
    return rows.map(({ uuid, at }) => at - posted.get(uuid)!).sort((one, other) => one - other);
  });
  await atPace([...posted.keys()], pause, (uuid) => cloud.delete(uuid));
  await cloud.untilGone([...posted.keys()]);
  const used = usedPer(servers, before, await cloud.usage());
  return { activeMs, cpuMs: [...used.values()].reduce((sum, { cpuMs }) => sum + cpuMs, 0) };
}

/** Begins the work on each item after a pause, whether or not the former work has ended, and resolves when all has. */
async function atPace<Item>(
  items: readonly Item[],
  pause: () => number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const underway: Promise<void>[] = [];
  let due = performance.now();
  for (const item of items) {
    due += pause();
    const ahead = due - performance.now();
    // A timer takes at least a millisecond: work that is already due begins without one.
    if (ahead >= 1) await delay(ahead);
    const working = work(item);
    // A rejection is reported below, when all have begun.
    working.catch(() => undefined);
    underway.push(working);
  }
  await Promise.all(underway);
}
