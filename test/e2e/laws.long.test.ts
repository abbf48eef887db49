import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { ServiceProcess } from "../../chaos/local/service-process.ts";
import type { LawsReading } from "../../core/stores/laws-reading.ts";
import type { LivePicture } from "../../services/api/dashboard/live-picture.ts";
import { eventually } from "../rigs/eventually.ts";
import { Cloud } from "./cloud.ts";

const PATIENT = { everyMs: 100, withinMs: 60_000 };
let cloud: Cloud;
let audit: ServiceProcess | null = null;

beforeAll(async () => {
  const shape = { cells: ["cell-1"], conductors: 1, agents: 2, schedulers: 1 };
  cloud = await Cloud.start({ ...shape, env: { BERTH_DASHBOARD: "true" } });
});
afterAll(async () => {
  await audit?.kill();
  await cloud?.close();
});
beforeEach(() => cloud.beforeTest());

/** Starts the audit of a deployment, as a process beside the others. */
function startAudit(agents: readonly string[]): ServiceProcess {
  const words = ["--watch", "--publish", "--every", "250ms", "--pause", "500ms"];
  const started = new ServiceProcess({
    name: "audit",
    argv: ["audit", ...words, ...(agents.length === 0 ? [] : ["--agents", agents.join(",")])],
    env: () => ({ BERTH_DATABASE_URL: cloud.databaseUrl, BERTH_REDIS_URL: cloud.redis.url }),
  });
  // The process is ended by a signal. Its exit code is 1 when the audit has found something.
  started.run().catch(() => undefined);
  return started;
}

async function lamps(): Promise<LawsReading | null> {
  const { figures } = (await (await fetch(`${cloud.apiUrl}/berth/v1/live/picture`)).json()) as LivePicture;
  return figures.laws;
}
const eventuallyLamps = (what: string, is: (laws: LawsReading | null) => boolean) =>
  eventually(what, async () => is(await lamps()), PATIENT);
const probes = () =>
  cloud.cells.flatMap(({ agents }) => agents.map((one) => `${one.probes?.host}:${one.probes?.port}`));

test("an api shows what an audit in another process finds: all in order, a law broken and healed, and nothing once it is silent", async () => {
  expect(await lamps()).toBeNull();
  audit = startAudit(probes());
  await eventuallyLamps("all laws hold", (laws) => laws?.broken.length === 0 && laws.unchecked.length === 0);

  const [cell] = cloud.cells;
  const change = (by: number) => cell?.query("update inventories set used = used + $1", [by]);
  // Past violations that the history proves stay for ten minutes, so this looks only at the findings of the present
  // readings.
  const isBrokenNow = (laws: LawsReading | null) =>
    laws?.broken.some(
      ({ law, evidence }) => law === 1 && evidence.startsWith("used is not the sum of the allocations"),
    ) === true;
  await change(1);
  await eventuallyLamps("law 1 is broken", isBrokenNow);
  await change(-1);
  await eventuallyLamps("law 1 holds again", (laws) => laws !== null && !isBrokenNow(laws));

  await audit.kill();
  await eventuallyLamps("the laws are unknown", (laws) => laws === null);
});

test("an audit that does not know what runs on a host says nothing about laws 4 and 6", async () => {
  audit = startAudit(probes().slice(0, 1));
  await eventuallyLamps("two laws are unchecked", (laws) => laws?.broken.length === 0 && `${laws.unchecked}` === "4,6");
  await cloud.redis.kill();
  await eventuallyLamps("the laws are unknown without Redis", (laws) => laws === null);
  await cloud.redis.restart();
  await eventuallyLamps("the audit goes on", (laws) => laws !== null);
  await audit.stop();
});
