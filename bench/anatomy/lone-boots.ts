import { setTimeout as delay } from "node:timers/promises";
import { withClient } from "../../adapters/postgres/client/databases.ts";
import { FAKE_METADATA_KEY } from "../../services/compute-agent/fake-script.ts";
import { type Measured, measuredOf } from "../measure.ts";
import type { MeasuredCloud } from "./measured-cloud.ts";

export const LONE_BOOTS = 40;
const ACTIVE_MS_MAX = 30_000;
/** A boot is first looked at after this part of the shortest time so far, since the looks take CPU from it. */
const UNSEEN_SHARE = 0.6;

/**
 * Milliseconds from the POST of a server to the moment when its cell's database has it ACTIVE, while nothing else is under way. The next
 * server is requested right after that. With `failingHosts`, the builds on that many first hosts of each server fail.
 */
export async function measureLoneBoots(cloud: MeasuredCloud, failingHosts = 0): Promise<Measured> {
  const script = { outcome: "reschedule", first: failingHosts };
  const metadata = failingHosts === 0 ? {} : { [FAKE_METADATA_KEY]: JSON.stringify(script) };
  const times: number[] = [];
  const uuids: string[] = [];
  await withClient(cloud.databaseUrl, async (client) => {
    for (let boot = 0; boot < LONE_BOOTS; boot += 1) {
      const posted = performance.now();
      const uuid = await cloud.boot(metadata);
      const unseenMs = times.length === 0 ? 0 : UNSEEN_SHARE * Math.min(...times);
      await delay(Math.max(0, unseenMs - (performance.now() - posted)));
      const isActive = {
        name: "is-active",
        text: "select from servers where uuid = $1 and status = 'ACTIVE'",
        values: [uuid],
      };
      while ((await client.query(isActive)).rowCount === 0) {
        if (performance.now() - posted > ACTIVE_MS_MAX) throw new Error(`${uuid} did not become ACTIVE`);
        await delay(1);
      }
      times.push(performance.now() - posted);
      uuids.push(uuid);
    }
    for (const uuid of uuids) await cloud.delete(uuid);
    await cloud.untilGone(uuids);
  });
  return measuredOf(times);
}
