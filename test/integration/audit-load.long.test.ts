import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { PostgresApiStore } from "../../adapters/postgres/api/postgres-api-store.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { auditTwice } from "../../audit/audit-twice.ts";
import { conductorSettingNames } from "../../audit/conductor-setting-names.ts";
import { healViolations } from "../../audit/heal-violations.ts";
import { changeText } from "../../audit/print-change.ts";
import { watchCloud } from "../../audit/watch-cloud.ts";
import type { HostConfig } from "../../services/compute-agent/host-config.ts";
import { serverId, serverSpec } from "../contract/cell-fixtures.ts";
import { eventually } from "../rigs/eventually.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";

const CELLS = ["cell-1", "cell-2"];
const CLIENTS = 6;
const ROUNDS = 10;

/** Small enough that claims reach the limits, and every third host fails builds. */
function hostsOf(cell: string): HostConfig[] {
  return Array.from({ length: 6 }, (_, index) => ({
    name: `${cell}-host-${index}`,
    inventories: { VCPU: { total: 2 }, MEMORY_MB: { total: 4_096 }, DISK_GB: { total: 100 } },
    ...(index % 3 === 1 && { fake: { outcome: "reschedule" as const, probability: 0.5, reason: "it failed" } }),
  }));
}

describe("an audit of a running cloud", () => {
  let cloud: TestCloud;
  beforeAll(async () => {
    cloud = await startTestCloud({
      cells: CELLS.map((name) => ({ name, hosts: hostsOf(name) })),
      schedulers: 2,
      conductors: 2,
    });
    await call("POST", "/flavors", { flavor: { id: "small", name: "small", vcpus: 1, ram: 64, disk: 0 } });
  });
  afterAll(() => cloud?.close());

  async function call<Answer>(method: string, path: string, body?: unknown): Promise<Answer | null> {
    const { status, json } = await cloud.call(method, `/v2.1${path}`, body, 64);
    if (status === 404) return null;
    if (status >= 400) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(json)}`);
    return json as Answer | null;
  }
  async function statusOf(id: string): Promise<string> {
    const answer = await call<{ readonly server: { readonly status: string } }>("GET", `/servers/${id}`);
    return answer?.server.status ?? "gone";
  }
  /** Boots a server and deletes it, every other one in the middle of its build. */
  async function bootAndDelete(round: number): Promise<void> {
    const server = { name: "web", flavorRef: "small", networks: "none", imageRef: "" };
    const created = await call<{ readonly server: { readonly id: string } }>("POST", "/servers", { server });
    const id = created?.server.id ?? "";
    const slow = { everyMs: 50, withinMs: 60_000 };
    if (round % 2 === 0) await eventually("the build", async () => (await statusOf(id)) !== "BUILD", slow);
    await call("DELETE", `/servers/${id}`);
    await eventually("the delete", async () => (await statusOf(id)) === "gone", slow);
  }

  test("raises no alarm for work in progress, and checks every transaction", async () => {
    const ending = new AbortController();
    const changes: string[] = [];
    const watch = watchCloud({
      ...{ apiUrl: cloud.databaseUrl, cells: cloud.cells, conductorSettings: conductorSettingNames },
      // The settings of `berth audit`, except that it reads more often.
      ...{ pauseMs: 3_000, patienceMs: 30_000, everyMs: 100 },
      signal: ending.signal,
      onChange: (change) => changes.push(changeText(change)),
    });
    const client = async (): Promise<void> => {
      for (let round = 0; round < ROUNDS; round += 1) await bootAndDelete(round);
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
    ending.abort();
    const { report, readings, transactions } = await watch;
    expect([changes, report.violations]).toEqual([[], []]);
    expect(readings).toBeGreaterThan(3);
    expect(Math.min(...Object.values(transactions))).toBeGreaterThan(0);
    expect(report.counts).toMatchObject({ hosts: 12, hostsAsked: 12 });
  });

  test("a healed request that was lost on its way to its cell is built", async () => {
    const pool = createPool({ url: cloud.databaseUrl, applicationName: "audit test" });
    try {
      const store = new PostgresApiStore(pool);
      await store.accept([serverSpec(1)]);
      await store.assignCells([{ serverUuid: serverId(1), from: null, to: "cell-1" }]);
    } finally {
      await pool.end();
    }
    const { violations } = await auditTwice({
      ...{ apiUrl: cloud.databaseUrl, cells: cloud.cells, conductorSettings: conductorSettingNames },
      ...{ pauseMs: 0, patienceMs: 0 },
    });
    expect(violations.map(({ where }) => where)).toEqual([`server ${serverId(1)}`]);
    const [healing] = await healViolations({ apiUrl: cloud.databaseUrl, cells: cloud.cells }, violations, false);
    expect(healing?.outcome.kind).toBe("healed");
    await eventually("the server", () => hasHome(cloud, serverId(1)), { everyMs: 100, withinMs: 60_000 });
  });

  test("a server that a restored cell has again although it was deleted is deleted by the healing", async () => {
    const server = { name: "web", flavorRef: "small", networks: "none", imageRef: "" };
    const created = await call<{ readonly server: { readonly id: string } }>("POST", "/servers", { server });
    const id = created?.server.id ?? "";
    const slow = { everyMs: 50, withinMs: 60_000 };
    await eventually("the build", async () => (await statusOf(id)) === "ACTIVE", slow);
    const pool = createPool({ url: cloud.databaseUrl, applicationName: "audit test" });
    onTestFinished(() => pool.end());
    // The rows are those after a delete, and the cell's those before it.
    await pool.query("update requests set state = 'deleted', gone = true where server_uuid = $1", [id]);
    expect(await statusOf(id)).toBe("gone");
    const audited = { apiUrl: cloud.databaseUrl, cells: cloud.cells };
    const audit = () => auditTwice({ ...audited, conductorSettings: conductorSettingNames, pauseMs: 0, patienceMs: 0 });
    const { violations } = await audit();
    expect(violations).toMatchObject([
      { what: "a server lives in its cell, and no request asks for it", where: expect.stringContaining(id) },
    ]);
    const heal = async (isDryRun: boolean) => (await healViolations(audited, violations, isDryRun))[0]?.outcome;
    expect(await heal(true)).toMatchObject({ kind: "healed" });
    expect((await audit()).violations).toHaveLength(1);
    const [{ cell }] = (await pool.query("select cell from requests where server_uuid = $1", [id])).rows;
    await pool.query("update requests set cell = 'elsewhere' where server_uuid = $1", [id]);
    expect(await heal(false)).toMatchObject({ kind: "left", why: expect.stringContaining("cell elsewhere") });
    await pool.query("update requests set cell = $2, state = 'failed' where server_uuid = $1", [id, cell]);
    expect(await heal(false)).toMatchObject({ kind: "left", why: expect.stringContaining("delete the server") });
    await pool.query("update requests set state = 'deleted' where server_uuid = $1", [id]);
    expect(await heal(false)).toMatchObject({ kind: "healed", before: "deleted" });
    await eventually("the guest's end", async () => !(await hasHome(cloud, id)), slow);
    await eventually("a clean audit", async () => (await audit()).violations.length === 0, slow);
    expect(await heal(false)).toEqual({ kind: "in-order" });
    const gone = violations.map((violation) => ({
      ...violation,
      subject: unasked("ffffffff-ffff-4fff-bfff-ffffffffffff"),
    }));
    const [unknown] = await healViolations(audited, gone, false);
    expect(unknown?.outcome).toMatchObject({ kind: "left", why: expect.stringContaining("does not know it") });
  });
});

const unasked = (serverUuid: string) => ({ kind: "unasked" as const, cell: "cell-1", serverUuid });

/** Whether exactly one host runs the server. */
async function hasHome(cloud: TestCloud, uuid: string): Promise<boolean> {
  const guests = await Promise.all(cloud.cells.map(async (cell) => [...(await cell.runningGuests()).values()].flat()));
  return guests.flat().filter((guest) => guest.serverUuid === uuid).length === 1;
}
