import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { LocalService } from "../../chaos/local/local-service.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import { eventually } from "../rigs/eventually.ts";
import { Cloud } from "./cloud.ts";

/** A service has 8 seconds to close, and exits with 1 when they were not enough. On a busy machine the rest may take longer. */
const GONE_MS_MAX = 60_000;
const PATIENT = { everyMs: 50, withinMs: 90_000 };

describe("services that are told to stop", () => {
  let cloud: Cloud;

  beforeAll(async () => {
    cloud = await Cloud.start({ cells: ["cell-1"] });
  });
  afterAll(() => cloud?.close());
  beforeEach(() => cloud.beforeTest());

  /** The exit codes of the services. */
  async function end(services: readonly (LocalService | undefined)[]): Promise<readonly string[]> {
    return Promise.all(
      services.map(async (one) => {
        if (one === undefined) throw new Error("too few services");
        return `${one.role} ${await withDeadline(one.stop(), GONE_MS_MAX, `the end of ${one.name}`)}`;
      }),
    );
  }

  async function underLoad(): Promise<{
    readonly uuids: Promise<readonly string[]>;
    readonly cell: Cloud["cells"][0];
  }> {
    const flavor = await cloud.compute.flavor();
    const [cell] = cloud.cells;
    if (cell === undefined) throw new Error("no cell");
    const before = await cell.tasksGiven("build");
    const uuids = cloud.compute.bootMany(30, { flavor, fake: { duration_ms: 2_500 } });
    await eventually("builds", async () => (await cell.tasksGiven("build")) >= before + 10, PATIENT);
    return { uuids, cell };
  }

  test("exit with 0 within their grace in the middle of builds, which other processes finish", async () => {
    const { uuids, cell } = await underLoad();
    const accepted = await uuids;
    const ending = [cloud.api, cloud.schedulers[0], cell.conductors[0]];
    const ended = await end(ending);
    expect(ended).toEqual(["api", "scheduler", "conductor"].map((role) => `${role} exit code 0`));
    // The last log line of each service says why it stopped.
    const lastLines = ending.map((one) => one?.logSinceMark(2) ?? "");
    expect(lastLines.filter((lines) => !lines.includes("the process ended, as SIGTERM ordered"))).toEqual([]);
    await cloud.makeWhole();
    const servers = await cloud.compute.ended(accepted);
    expect(servers.filter(({ status }) => status !== "ACTIVE")).toEqual([]);
    expect(await end([cell.agents[0]])).toEqual(["agent exit code 0"]);
    await cloud.makeWhole();
    await cloud.expectCleanAudit();
  });

  test("exit with 0 within their grace even when the NATS servers are gone", async () => {
    const { uuids, cell } = await underLoad();
    const accepted = await uuids;
    await Promise.all([cloud.nats.kill(), cell.nats.kill()]);
    try {
      const ended = await end([cloud.api, ...cloud.schedulers, ...cell.conductors]);
      expect(ended.filter((how) => !how.endsWith(" exit code 0"))).toEqual([]);
    } finally {
      await Promise.all([cloud.nats.restart(), cell.nats.restart()]);
    }
    await cloud.makeWhole();
    const servers = await cloud.compute.ended(accepted);
    expect(servers.filter(({ status }) => status !== "ACTIVE")).toEqual([]);
    await cloud.expectCleanAudit();
  });

  test("exit within their grace even while the cell's database is paused", async () => {
    const { uuids, cell } = await underLoad();
    const accepted = await uuids;
    await cell.database.pause();
    try {
      const ended = await end([cloud.api, cloud.schedulers[0], cell.conductors[0]]);
      expect(ended.filter((how) => !/exit code [01]$/.test(how))).toEqual([]);
    } finally {
      await cell.database.resume();
    }
    await cloud.makeWhole();
    const servers = await cloud.compute.ended(accepted);
    expect(servers.filter(({ status }) => status !== "ACTIVE")).toEqual([]);
    await cloud.expectCleanAudit();
  });
});
