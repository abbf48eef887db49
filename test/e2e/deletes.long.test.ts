import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { withClient } from "../../adapters/postgres/client/databases.ts";
import { eventually } from "../rigs/eventually.ts";
import type { E2eCell } from "./cell.ts";
import { Cloud } from "./cloud.ts";
import { holdRows } from "./held-rows.ts";
import { RunWatch } from "./run-watch.ts";

const PATIENT = { everyMs: 20, withinMs: 60_000 };
const ALL_INVENTORIES = "select from inventories order by provider_id, class_id for update";

describe("a server that is deleted", () => {
  let cloud: Cloud;
  let cell: E2eCell;
  let flavor: string;
  let watch: RunWatch;

  beforeAll(async () => {
    const conductorEnv = { BERTH_LEASE: "3s", BERTH_HOST_GRACE: "2s", BERTH_AGENT_UNSEEN: "3s" };
    cloud = await Cloud.start({ cells: ["cell-1"], agents: 1, hostsPerAgent: 4, conductorEnv });
    cell = cloud.cell("cell-1");
    flavor = await cloud.compute.flavor();
  });
  afterAll(() => cloud?.close());
  beforeEach(async () => {
    await cloud.beforeTest();
    watch = new RunWatch(cloud);
  });

  const taskOf = async (uuid: string) => (await cell.openTasks([uuid]))[0];
  const taken = (uuid: string) =>
    eventually("the build to be taken", async () => typeof (await taskOf(uuid))?.owner === "string", PATIENT);
  const waitersAtLeast = (count: number) =>
    eventually(`${count} to wait for a lock`, async () => (await cell.lockWaiters()) >= count, PATIENT);
  const cancelled = (uuid: string) =>
    eventually(
      "the request to be cancelled",
      () =>
        withClient(cloud.databaseUrl, async (client) => {
          const { rows } = await client.query("select state from requests where server_uuid = $1", [uuid]);
          return rows[0]?.state === "cancelled";
        }),
      PATIENT,
    );

  /** Nothing is left of the server: no allocation, no guest, no open task; and it never ran in two places. */
  async function expectNothingLeft(uuid: string) {
    await cloud.compute.gone([uuid]);
    await cloud.makeWhole();
    await eventually(
      "its guests to be gone",
      async () => {
        const guests = await Promise.all(cell.agents.map((agent) => agent.guests()));
        return guests.flat().every((guest) => guest !== null && guest.serverUuid !== uuid);
      },
      PATIENT,
    );
    await cloud.expectCleanAudit();
    expect(await cell.holders(uuid)).toEqual([]);
    expect(await taskOf(uuid)).toBeUndefined();
    expect(await watch.stop()).toEqual([]);
  }

  test("before a scheduler has taken it never arrives in a cell", async () => {
    for (const scheduler of cloud.schedulers) scheduler.pause();
    const uuid = await cloud.compute.boot({ flavor });
    await cloud.compute.delete(uuid);
    expect(await cloud.compute.show(uuid)).toBeNull();
    for (const scheduler of cloud.schedulers) scheduler.resume();
    // A later request in the same queue.
    await cloud.compute.endedOne(await cloud.compute.boot({ flavor }));
    await expectNothingLeft(uuid);
    expect(await cell.store.servers([uuid])).toEqual([]);
  });

  test("while its claim waits in the cell's database is deleted as soon as it arrives", async () => {
    const release = await holdRows(cell.databaseUrl, ALL_INVENTORIES);
    const uuid = await cloud.compute.boot({ flavor });
    await waitersAtLeast(1);
    const deleting = cloud.compute.delete(uuid);
    await cancelled(uuid);
    await release();
    await deleting;
    await expectNothingLeft(uuid);
  });

  test("while its task lies in the outbox is never built", async () => {
    for (const conductor of cell.conductors) conductor.pause();
    const uuid = await cloud.compute.boot({ flavor });
    await eventually("the task to be stored", () => taskOf(uuid), PATIENT);
    await cloud.compute.delete(uuid);
    for (const conductor of cell.conductors) conductor.resume();
    await expectNothingLeft(uuid);
    expect(await cell.store.attempts(uuid)).toMatchObject([{ selection: 0, result: "cancelled" }]);
  });

  test("while a host builds it is cancelled there", async () => {
    const uuid = await cloud.compute.boot({ flavor, fake: { outcome: "hang" } });
    await taken(uuid);
    await cloud.compute.delete(uuid);
    await expectNothingLeft(uuid);
    expect(await cell.store.attempts(uuid)).toMatchObject([{ selection: 0, result: "cancelled" }]);
  });

  test("between two hosts is built on neither", async () => {
    const [agent] = cell.agents;
    agent?.pause();
    const uuid = await cloud.compute.boot({ flavor, fake: { outcome: "reschedule", first: 1 } });
    await taken(uuid);
    const release = await holdRows(cell.databaseUrl, ALL_INVENTORIES);
    agent?.resume();
    // The first host has failed, and its allocation is about to be swapped for the alternate's.
    await waitersAtLeast(1);
    const deleting = cloud.compute.delete(uuid);
    await cancelled(uuid);
    await release();
    await deleting;
    await expectNothingLeft(uuid);
  });

  test("at the moment it becomes ACTIVE is deleted", async () => {
    const [agent] = cell.agents;
    agent?.pause();
    const uuid = await cloud.compute.boot({ flavor });
    await taken(uuid);
    const release = await holdRows(cell.databaseUrl, "select from servers where uuid = $1 for update", [uuid]);
    agent?.resume();
    // Its guest is prepared, and the commit that makes the host its home is waiting.
    await waitersAtLeast(1);
    const deleting = cloud.compute.delete(uuid);
    await cancelled(uuid);
    await release();
    await deleting;
    await expectNothingLeft(uuid);
  });

  test("while its host is dead is deleted at once, and its guest as soon as the host is back", async () => {
    const uuid = await cloud.compute.boot({ flavor });
    const { status } = await cloud.compute.endedOne(uuid);
    expect(status).toBe("ACTIVE");
    await eventually(
      "the guest to run",
      async () => (await cell.agents[0]?.guests())?.some((guest) => guest.running),
      PATIENT,
    );
    await cell.agents[0]?.kill();
    await cloud.compute.delete(uuid);
    await cloud.compute.gone([uuid]);
    await expectNothingLeft(uuid);
  });
});
