import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { LocalService } from "../../chaos/local/local-service.ts";
import { eventually } from "../rigs/eventually.ts";
import { Cloud } from "./cloud.ts";

const PATIENT = { everyMs: 50, withinMs: 60_000 };

describe("a cloud that loses its queues", () => {
  let cloud: Cloud;
  let flavor: string;

  beforeAll(async () => {
    cloud = await Cloud.start({ cells: ["cell-1"], schedulers: 1 });
    flavor = await cloud.compute.flavor();
  });
  afterAll(() => cloud?.close());
  beforeEach(() => cloud.beforeTest());

  const pids = () => cloud.services.map((one) => `${one.name}: ${one.running ? one.pid : "ended"}`);
  const readyz = async (url: string) => (await fetch(`${url}/readyz`)).status;
  const readyzOf = ({ probes }: LocalService) => readyz(`http://${probes?.host}:${probes?.port}`);
  const scheduler = () => cloud.schedulers[0] as LocalService;

  /** Boots a server, moves it to another host of its cell, and checks its final state in the cell. */
  async function bootAndMove(): Promise<void> {
    const id = await cloud.compute.boot({ flavor });
    expect(await cloud.compute.endedOne(id)).toMatchObject({ status: "ACTIVE" });
    const [before] = await cloud.cell("cell-1").store.servers([id]);
    const answer = await cloud.compute.call("POST", `/servers/${id}/action`, { migrate: null });
    expect(answer.status).toBe(202);
    const [after] = await eventually(
      "the server to be elsewhere",
      async () => {
        const found = await cloud.cell("cell-1").store.servers([id]);
        return found[0]?.status === "VERIFY_RESIZE" && found;
      },
      PATIENT,
    );
    expect(after?.host).not.toBe(before?.host);
    await cloud.compute.delete(id);
    await cloud.compute.gone([id]);
  }

  test("the API tier's queue comes back empty: later requests are placed, and no process was restarted", async () => {
    const before = pids();
    await cloud.nats.kill();
    await eventually("the scheduler to say so", async () => (await readyzOf(scheduler())) === 503, PATIENT);
    cloud.nats.wipe();
    await cloud.nats.restart();
    await eventually("the scheduler to be ready", async () => (await readyzOf(scheduler())) === 200, PATIENT);
    await eventually("the api to be ready", async () => (await readyz(cloud.apiUrl)) === 200, PATIENT);
    await bootAndMove();
    expect(pids()).toEqual(before);
    await cloud.expectCleanAudit();
  });

  test("a cell's queues come back empty: its tasks and events continue", async () => {
    const before = pids();
    const { nats } = cloud.cell("cell-1");
    await nats.kill();
    nats.wipe();
    await nats.restart();
    await bootAndMove();
    expect(pids()).toEqual(before);
    await cloud.expectCleanAudit();
  });

  test("the API tier's NATS is gone for good: servers are placed and moved nevertheless, even by a scheduler that starts without it", async () => {
    await cloud.nats.kill();
    expect(await readyz(cloud.apiUrl)).toBe(200);
    await bootAndMove();
    await scheduler().kill();
    const id = await cloud.compute.boot({ flavor });
    await scheduler().start();
    expect(await readyzOf(scheduler())).toBe(503);
    expect(await cloud.compute.endedOne(id)).toMatchObject({ status: "ACTIVE" });
    await cloud.compute.delete(id);
    await cloud.nats.restart();
    await eventually("the scheduler to be ready", async () => (await readyzOf(scheduler())) === 200, PATIENT);
    await cloud.compute.gone([id]);
    await cloud.expectCleanAudit();
  });
});
