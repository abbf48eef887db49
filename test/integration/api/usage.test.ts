import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { conductorId } from "../../contract/cell-fixtures.ts";
import { eventually } from "../../rigs/eventually.ts";
import { ApiRig } from "./api-rig.ts";

const as = (token: string, minor = 40) => ({
  "x-auth-token": token,
  "openstack-api-version": `compute 2.${minor}`,
});
const ADMIN = as("admin:ops");
const USAGE = "/v2.1/os-simple-tenant-usage";
const HOUR_MS = 3_600_000;
const text = (atMs: number) => new Date(atMs).toISOString().slice(0, 23);

interface UsagePage {
  readonly tenant_usages: readonly { readonly server_usages: readonly { readonly instance_id: string }[] }[];
  readonly tenant_usages_links?: readonly { readonly href: string }[];
}

let rig: ApiRig;
let servers: string[];
beforeAll(async () => {
  rig = await ApiRig.start({ auth: "noauth2" });
  const boot = async (project: string, cell: string, host: number) => {
    const body = { server: { name: `web-${host}`, flavorRef: "1", networks: "none" } };
    const { id } = (await rig.post("/v2.1/servers", body, as(`ann:${project}`))).json().server;
    const task = await rig.dispatch(id, cell, [host]);
    await rig.cell(cell).store.commitActive([{ ...(await rig.take(cell, task)), selection: 0 }]);
    return id as string;
  };
  servers = [await boot("p1", "north", 0), await boot("p1", "south", 3), await boot("p2", "north", 1)];
  const [, , gone] = servers as [string, string, string];
  expect((await rig.delete(`/v2.1/servers/${gone}`, as("ann:p2"))).statusCode).toBe(204);
  const { store } = rig.cell("north");
  const [task] = rig.deleteTasks("north");
  const taken = await store.takeTasks(conductorId(1), [task!.id]);
  await store.commitDeleted(taken.map(({ epoch }) => ({ taskId: task!.id, serverUuid: gone, epoch })));
});
afterAll(() => rig.close());

const period = () => `start=${text(Date.now() - HOUR_MS)}&end=${text(Date.now() + HOUR_MS)}`;

describe("the log of usage audits", () => {
  const LOG = "/v2.1/os-instance_usage_audit_log";

  it("says that no host has run one in the last month that ended before a time", async () => {
    const { instance_usage_audit_log: log } = (await rig.get(`${LOG}/2026-03-01%2000:00:00.0`, ADMIN)).json();
    expect(log).toMatchObject({
      ...{ period_beginning: "2026-01-01 00:00:00", period_ending: "2026-02-01 00:00:00" },
      ...{ num_hosts: 6, num_hosts_done: 0, num_hosts_not_run: 6, overall_status: "0 of 6 hosts done. 0 errors." },
    });
    expect(log.hosts_not_run).toHaveLength(6);
    const january = (await rig.get(`${LOG}/2026-01-15%2012:00:00`, ADMIN)).json().instance_usage_audit_log;
    expect([january.period_beginning, january.period_ending]).toEqual(["2025-12-01 00:00:00", "2026-01-01 00:00:00"]);
    expect((await rig.get(LOG, ADMIN)).json().instance_usage_audit_logs.num_hosts).toBe(6);
    const bad = await rig.get(`${LOG}/today`, ADMIN);
    expect([bad.statusCode, bad.json().badRequest.message]).toEqual([400, "Invalid timestamp for date today"]);
  });

  it("is for admins, by Nova's policies", async () => {
    for (const [path, rule] of [
      ["", "list"],
      ["/2026-01-01%2000:00:00", "show"],
    ]) {
      expect((await rig.get(LOG + path, as("ann:p1"))).json().forbidden.message).toBe(
        `Policy doesn't allow os_compute_api:os-instance-usage-audit-log:${rule} to be performed.`,
      );
    }
  });
});

describe("the usage of projects", () => {
  it("sums what the servers used in the period, those that are deleted included", async () => {
    const answer = await rig.get(`${USAGE}?${period()}`, ADMIN);
    expect(answer.statusCode, answer.body).toBe(200);
    const { tenant_usages: usages } = answer.json();
    const [p1] = usages.filter((usage: { tenant_id: string }) => usage.tenant_id === "p1");
    expect(usages).toHaveLength(2);
    expect(p1).toMatchObject({ start: expect.stringMatching(/^\d{4}-.*\.\d{6}$/), stop: expect.any(String) });
    expect(p1).not.toHaveProperty("server_usages");
    expect(p1.total_hours).toBeGreaterThan(0);
    expect(p1.total_memory_mb_usage).toBeCloseTo(512 * p1.total_hours);
    expect(p1.total_vcpus_usage).toBeCloseTo(p1.total_hours);
    // The end of the period is not in the future, so nothing is charged for hours to come.
    expect(p1.total_hours).toBeLessThan(1);
  });

  it("has each server, if details are asked for or one project is shown", async () => {
    const { tenant_usages: all } = (await rig.get(`${USAGE}?detailed=1&${period()}`, ADMIN)).json();
    const ended = all.find(({ tenant_id: id }: { tenant_id: string }) => id === "p2").server_usages;
    expect(ended).toEqual([
      {
        ...{ hours: expect.any(Number), flavor: "m1.tiny", instance_id: servers[2], name: "web-1", tenant_id: "p2" },
        ...{ memory_mb: 512, local_gb: 1, vcpus: 1, uptime: expect.any(Number), state: "terminated" },
        ...{ started_at: expect.any(String), ended_at: expect.stringMatching(/^\d{4}-.*\.\d{6}$/) },
      },
    ]);
    await rig.put(`/v2.1/servers/${servers[0]}`, { server: { name: "renamed" } }, as("ann:p1"));
    const { tenant_usage: own } = (await rig.get(`${USAGE}/p1?${period()}`, as("ann:p1"))).json();
    expect(own.server_usages.map(({ name, state }: Record<string, string>) => [name, state]).toSorted()).toEqual([
      ["renamed", "active"],
      ["web-3", "active"],
    ]);
    expect((await rig.get(`${USAGE}/nobody?${period()}`, ADMIN)).json()).toEqual({ tenant_usage: {} });
    const past = `start=${text(Date.now() - 3 * HOUR_MS)}&end=${text(Date.now() - 2 * HOUR_MS)}`;
    expect((await rig.get(`${USAGE}?${past}`, ADMIN)).json()).toEqual({ tenant_usages: [] });
  });

  it("comes in pages of servers from 2.40 on, across cells", async () => {
    const seen: string[] = [];
    let url: string | undefined = `${USAGE}?detailed=1&limit=1&${period()}`;
    for (let pages = 0; url !== undefined && pages < 5; pages += 1) {
      const page: UsagePage = (await rig.get(url, ADMIN)).json();
      for (const usage of page.tenant_usages) for (const { instance_id: id } of usage.server_usages) seen.push(id);
      url = page.tenant_usages_links?.[0]?.href.slice("http://localhost:80".length);
    }
    expect(seen.toSorted()).toEqual(servers.toSorted());
    const before = (await rig.get(`${USAGE}?detailed=1&limit=1&${period()}`, as("admin:ops", 39))).json();
    expect(before).not.toHaveProperty("tenant_usages_links");
    expect(before.tenant_usages).toHaveLength(2);
  });

  it("refuses malformed periods, and markers that are no server of the project", async () => {
    const message = async (query: string, path = USAGE) =>
      (await rig.get(`${path}?${query}`, ADMIN)).json().badRequest?.message;
    const order = "Invalid start time. The start time cannot occur after the end time.";
    expect(await message("start=2026-02-01T00:00:00&end=2026-01-01T00:00:00")).toBe(order);
    expect(await message(`start=${text(Date.now() + HOUR_MS)}`)).toBe(order);
    const format = "Invalid datetime string: Datetime is in invalid format";
    for (const start of ["yesterday", "2026-01-01", "2026-13-01T00:00:00", "2026-01-01T00:00:00Z"])
      expect(await message(`start=${start}`)).toBe(format);
    expect(await message("start=2026-01-01%2000:00:00.000")).toBeUndefined();
    expect(await message("")).toBeUndefined();
    expect(await message(`marker=nope&${period()}`)).toBe("Marker nope could not be found.");
    expect(await message(`marker=${servers[2]}&${period()}`, `${USAGE}/p1`)).toMatch(
      /^Marker .* could not be found\.$/,
    );
    expect((await rig.get(`${USAGE}?other=1&${period()}`, as("admin:ops", 75))).statusCode).toBe(400);
    expect((await rig.get(`${USAGE}?other=1&${period()}`, as("admin:ops", 74))).statusCode).toBe(200);
  });

  it("is listed for admins, and shown to the members of a project", async () => {
    const forbidden = async (path: string, token: string) =>
      (await rig.get(`${path}?${period()}`, as(token))).json().forbidden?.message;
    expect(await forbidden(USAGE, "ann:p1")).toBe(
      "Policy doesn't allow os_compute_api:os-simple-tenant-usage:list to be performed.",
    );
    expect(await forbidden(`${USAGE}/p1`, "eve:p2")).toBe(
      "Policy doesn't allow os_compute_api:os-simple-tenant-usage:show to be performed.",
    );
    expect(await forbidden(`${USAGE}/p1`, "ann:p1")).toBeUndefined();
  });

  it("is not reported without the servers of a cell that does not answer", async () => {
    rig.cell("south").dead = true;
    try {
      expect((await rig.get(`${USAGE}?${period()}`, ADMIN)).statusCode).toBe(503);
    } finally {
      rig.cell("south").dead = false;
    }
    await eventually("the cell to be asked again", async () => {
      return (await rig.get(`${USAGE}?${period()}`, ADMIN)).statusCode === 200;
    });
  });
});
