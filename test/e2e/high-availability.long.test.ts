import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from "vitest";
import { schedulerRequestsConsumer } from "../../adapters/nats/streams.ts";
import { withClient } from "../../adapters/postgres/client/databases.ts";
import { eventually } from "../rigs/eventually.ts";
import { StandingCloud } from "./standing-cloud.ts";
import { type LoadReport, SteadyLoad } from "./steady-load.ts";

const PATIENT = { everyMs: 50, withinMs: 60_000 };
/**
 * Longer than a conductor's lease, and longer than a host may be unseen. A failover manager usually takes this long to promote a standby.
 */
const WITHOUT_PRIMARY_MS = 6_000;
const WARM = 15;

describe("a cloud whose servers may die", () => {
  let cloud: StandingCloud;

  beforeAll(async () => {
    cloud = await StandingCloud.start();
  });
  afterAll(() => cloud?.close());

  async function begin(): Promise<SteadyLoad> {
    onTestFailed(() => cloud.printLogs());
    const load = new SteadyLoad(cloud.compute, await cloud.compute.flavor());
    await eventually("the load to run", () => load.active >= WARM, PATIENT);
    return load;
  }

  /** Continues until servers that were accepted after this moment are ACTIVE. */
  async function untilServed(load: SteadyLoad): Promise<void> {
    const goal = load.accepted + WARM;
    await eventually("servers after the failure", () => load.active >= goal, PATIENT);
  }

  /** Nothing accepted is lost or doubled, in the ledger and on the hosts. */
  async function expectKept(what: string, { accepted, refused, acceptGapMs, activeGapMs }: LoadReport): Promise<void> {
    const servers = await cloud.compute.ended(accepted);
    const lost = servers.filter(({ status }) => status !== "ACTIVE");
    const guests = await eventually(
      "a guest of each server",
      async () => {
        const running = (await cloud.guests()).filter(({ serverUuid }) => accepted.includes(serverUuid));
        return running.length >= accepted.length ? running : null;
      },
      PATIENT,
    );
    const held = await withClient(cloud.cellUrl, (client) =>
      client.query<{ consumer: string; hosts: number }>(
        `select a.consumer_uuid as consumer, count(distinct p.root_id)::int as hosts
         from allocations a join resource_providers p on p.id = a.provider_id
         where a.consumer_uuid = any($1) group by 1`,
        [accepted],
      ),
    );
    const doubled = held.rows.filter(({ hosts }) => hosts !== 1).length + guests.length - accepted.length;
    process.stdout.write(
      `${what}: ${accepted.length} accepted, ${lost.length} lost, ${accepted.length - held.rows.length} claims lost, ` +
        `${doubled} doubled, ${refused} calls refused; at most ${(acceptGapMs / 1_000).toFixed(1)} s without an accepted call, ` +
        `${(activeGapMs / 1_000).toFixed(1)} s without a server becoming ACTIVE\n`,
    );
    expect(lost.map(({ id, status, fault }) => ({ id, status, fault }))).toEqual([]);
    expect(held.rows).toHaveLength(accepted.length);
    expect(doubled).toBe(0);
    await cloud.expectCleanAudit();
  }

  test("when the leader of the work queue is killed under load, no request is lost, and none is placed twice", async () => {
    const load = await begin();
    const { nats } = cloud;
    const leader = await nats.leaderOf(nats.apiUrl, schedulerRequestsConsumer.stream);
    await nats.kill(leader);
    await untilServed(load);
    await nats.restart(leader);
    await untilServed(load);
    await expectKept("nats-server killed", await load.stop());
  });

  test("when a cell's primary is killed under load and its standby promoted, no claim is lost, and no server runs twice", async () => {
    const load = await begin();
    await cloud.killPrimary();
    // A guest runs only after the commit that names its host was acknowledged, so every guest that runs now was promised.
    const promised = await cloud.guests();
    await delay(WITHOUT_PRIMARY_MS);
    await cloud.promote();
    await untilServed(load);
    const report = await load.stop();
    const { rows } = await withClient(cloud.cellUrl, (client) =>
      client.query<{ uuid: string; attempt: string }>(
        "select uuid, attempt_id as attempt from servers where status = 'ACTIVE'",
      ),
    );
    const homes = new Map(rows.map(({ uuid, attempt }) => [uuid, attempt]));
    expect(promised.filter(({ serverUuid, attemptId }) => homes.get(serverUuid) !== attemptId)).toEqual([]);
    await expectKept("primary killed", report);
  });
});
