import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { containerName, OWN_KEYS } from "../../services/compute-agent/lxd/container-of-server.ts";
import { eventually } from "../rigs/eventually.ts";
import { startTwoLxds, TICKING_IMAGE_ID } from "../rigs/lxd-daemon.ts";
import type { E2eCell } from "./cell.ts";
import { Cloud } from "./cloud.ts";
import { isInterrupted, isSeen, untilNoneIsMissed } from "./interrupt.ts";

const PATIENT = { everyMs: 100, withinMs: 60_000 };
/** Each missed moment is another round. */
const ROUNDS_MS = 600_000;
const lxd = await startTwoLxds();
const skipped = typeof lxd === "string" ? lxd : null;
const daemons = typeof lxd === "string" ? [] : lxd;

afterAll(async () => {
  for (const daemon of daemons) await daemon.close();
});

describe.skipIf(skipped !== null)(`containers${skipped === null ? "" : ` (skipped: ${skipped})`}`, () => {
  let cloud: Cloud;
  let cell: E2eCell;
  let flavor: string;

  beforeAll(async () => {
    const [first, second] = daemons;
    if (first === undefined || second === undefined) return;
    // The agents have an LXD each, as on two machines, and one directory of images.
    const agentEnv = (id: string) => {
      const own = id.endsWith("1") ? first : second;
      return { BERTH_LXD_SOCKET: own.socketPath, BERTH_LXD_LOGS: own.logs };
    };
    cloud = await Cloud.start({
      ...{ cells: ["cell-1"], schedulers: 1, conductors: 1, agents: 2, hostsPerAgent: 1, agentEnv },
      env: { BERTH_DRIVER: "lxd", BERTH_IMAGES_PATH: first.images, BERTH_SHUTDOWN_TIMEOUT: "5s" },
    });
    cell = cloud.cell("cell-1");
    flavor = await cloud.compute.flavor();
  });
  afterAll(() => cloud?.close());
  beforeEach(() => cloud.beforeTest());

  const containersOf = async (id: string) => {
    const all = await Promise.all(daemons.map((daemon) => daemon.containers()));
    return all.flat().filter(({ config }) => config[OWN_KEYS.server] === id);
  };
  const ticks = async (id: string): Promise<readonly number[]> => {
    const answer = await cloud.compute.call("POST", `/servers/${id}/action`, { "os-getConsoleOutput": {} });
    if (answer.status !== 200) return [];
    const { output } = (await answer.json()) as { readonly output: string };
    return [...output.matchAll(/^tick (\d+)\r?$/gm)].map(([, count]) => Number(count));
  };
  const tickingAfter = (id: string, count: number) =>
    eventually(`ticks after ${count}`, async () => ((await ticks(id)).at(-1) ?? -1) > count, PATIENT);
  const booted = async () => {
    const id = await cloud.compute.boot({ flavor, image: TICKING_IMAGE_ID });
    const host = (await cloud.compute.endedOne(id))["OS-EXT-SRV-ATTR:host"] ?? "";
    await tickingAfter(id, 0);
    return { id, host };
  };

  test("a server boots, stops, starts with its disk, is paused, and leaves nothing", async () => {
    const { id } = await booted();
    await cloud.compute.changed(id, "os-stop", "SHUTOFF");
    const [last = 0] = (await ticks(id)).slice(-1);
    await cloud.compute.changed(id, "os-start", "ACTIVE");
    await tickingAfter(id, last);
    await cloud.compute.changed(id, "pause", "PAUSED");
    expect((await containersOf(id)).map(({ status }) => status)).toEqual(["Frozen"]);
    await cloud.compute.changed(id, "unpause", "ACTIVE");
    await cloud.expectCleanAudit();
    await cloud.compute.delete(id);
    await cloud.compute.gone([id]);
    expect(await containersOf(id)).toEqual([]);
  });

  test("an image is made of a server while it runs, and another server starts from its disk", async () => {
    const { id } = await booted();
    await tickingAfter(id, 10);
    const made = await cloud.compute.call("POST", `/servers/${id}/action`, { createImage: { name: "copy" } });
    const { image_id: image } = (await made.json()) as { readonly image_id: string };
    const shown = async () => {
      const answer = await fetch(`${cloud.apiUrl}/image/v2/images/${image}`);
      return (await answer.json()) as { readonly status: string; readonly disk_format: string | null };
    };
    await eventually("the image", async () => (await shown()).status === "active", PATIENT);
    expect((await shown()).disk_format).toBeNull();
    const copy = await cloud.compute.boot({ flavor, image });
    await cloud.compute.endedOne(copy);
    await tickingAfter(copy, 0);
    expect((await ticks(copy))[0]).toBeGreaterThan(5);
    await cloud.expectCleanAudit();
  });

  test("a cold migration continues with the disk in the other host's LXD, and confirming it removes the source", async () => {
    const { id, host } = await booted();
    const [before = 0] = (await ticks(id)).slice(-1);
    const to = await cloud.compute.changed(id, "migrate", "VERIFY_RESIZE");
    expect(to).not.toBe(host);
    await tickingAfter(id, before);
    expect(await containersOf(id)).toHaveLength(2);
    await cloud.compute.changed(id, "confirmResize", "ACTIVE");
    await eventually("one container", async () => (await containersOf(id)).length === 1, PATIENT);
    await cloud.expectCleanAudit();
  });

  test.each(["source", "destination"])(
    "when the %s's agent dies during a cold migration, it is completed or called off, and nothing runs twice",
    async (side) => {
      const run = async () => {
        const { id, host } = await booted();
        const [before = 0] = (await ticks(id)).slice(-1);
        const agent = cell.agents.find(({ hosts }) => hosts.includes(host) === (side === "source"));
        if (agent === undefined) throw new Error(`no agent of the ${side}`);
        let runningMost = 0;
        const ended = async () => {
          const running = (await containersOf(id)).filter(({ status }) => status === "Running").length;
          runningMost = Math.max(runningMost, running);
          const server = await cloud.compute.show(id);
          return server?.["OS-EXT-STS:task_state"] === null && server;
        };
        await cloud.compute.call("POST", `/servers/${id}/action`, { migrate: null });
        const isReached = async () => (await containersOf(id)).length === 2;
        const isSeenThere = await isSeen("the container at the destination", isReached, async () => !!(await ended()));
        const [isHit, { status }] = await Promise.all([
          isSeenThere && isInterrupted(cell, { id }, agent),
          eventually("the end of the migration", ended, PATIENT),
        ]);
        await cloud.makeWhole();
        expect(["VERIFY_RESIZE", "ACTIVE"]).toContain(status);
        await tickingAfter(id, before);
        expect(runningMost).toBe(1);
        if (status === "VERIFY_RESIZE") await cloud.compute.changed(id, "revertResize", "ACTIVE");
        await eventually("one container", async () => (await containersOf(id)).length === 1, PATIENT);
        await tickingAfter(id, before);
        await cloud.expectCleanAudit();
        return isHit ? [] : [`the migration, with the ${side}'s agent`];
      };
      await untilNoneIsMissed(["all"], async () => [await run()]);
    },
    ROUNDS_MS,
  );

  test("a container continues while its agent is killed, and the next agent has it", async () => {
    const { id, host } = await booted();
    const agent = cell.agents.find(({ hosts }) => hosts.includes(host));
    await agent?.kill();
    const attemptId = (await cell.store.servers([id]))[0]?.attemptId ?? "";
    const [found] = await containersOf(id);
    expect([found?.name, found?.status]).toEqual([containerName({ host, attemptId }), "Running"]);
    await cloud.makeWhole();
    await cloud.compute.changed(id, "os-stop", "SHUTOFF");
    expect((await containersOf(id)).map(({ status }) => status)).toEqual(["Stopped"]);
    await cloud.expectCleanAudit();
  });
});
