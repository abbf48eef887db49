import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { forEachBounded } from "../../runtime/for-each-bounded.ts";
import type { HostConfig } from "../../services/compute-agent/host-config.ts";
import { eventually } from "../rigs/eventually.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";

const AT_A_TIME = 24;
const SLOWLY = { everyMs: 200, withinMs: 240_000 };
const hosts = Array.from(
  { length: 8 },
  (_, at): HostConfig => ({
    name: `h-${at}`,
    inventories: { VCPU: { total: 200 }, MEMORY_MB: { total: 65_536 }, DISK_GB: { total: 10_000 } },
  }),
);

interface Listed {
  readonly id: string;
  readonly status: string;
  readonly flavor: { readonly vcpus: number; readonly ram: number };
}

let cloud: TestCloud;
let quotas: string;
beforeAll(async () => {
  cloud = await startTestCloud({ cells: [{ name: "cell-1", hosts }], schedulers: 1, conductors: 1 });
  for (const [id, vcpus] of [
    ["s", 1],
    ["m", 2],
  ] as const)
    await cloud.call("POST", "/v2.1/flavors", { flavor: { id, name: id, vcpus, ram: 64 * vcpus, disk: 0 } });
  const first = await boot();
  quotas = `/v2.1/os-quota-sets/${(await cloud.call("GET", `/v2.1/servers/${first.json.server.id}`)).json.server.tenant_id}`;
  await cloud.call("DELETE", `/v2.1/servers/${first.json.server.id}`);
  await eventually("the first server's end", async () => (await servers()).length === 0, SLOWLY);
});
afterAll(() => cloud?.close());

const boot = () =>
  cloud.call("POST", "/v2.1/servers", { server: { name: "q", flavorRef: "s", imageRef: "", networks: "none" } });
async function servers(): Promise<readonly Listed[]> {
  const found: Listed[] = [];
  for (;;) {
    const marker = found.length === 0 ? "" : `&marker=${found.at(-1)?.id}`;
    const page: readonly Listed[] = (await cloud.call("GET", `/v2.1/servers/detail?limit=1000${marker}`)).json.servers;
    if (page.length === 0) return found;
    found.push(...page);
  }
}
async function used(): Promise<readonly [instances: number, cores: number, ram: number]> {
  const { instances, cores, ram } = (await cloud.call("GET", `${quotas}/detail`)).json.quota_set;
  return [instances.in_use, cores.in_use, ram.in_use];
}
/** Resolves with all servers when none of them is on its way. */
const settled = () =>
  eventually(
    "all servers to be at rest",
    async () => {
      const all = await servers();
      return all.every(({ status }) => ["ACTIVE", "ERROR", "VERIFY_RESIZE"].includes(status)) && all;
    },
    SLOWLY,
  );
const sums = (all: readonly Listed[]) => [
  all.length,
  all.reduce((sum, { flavor }) => sum + flavor.vcpus, 0),
  all.reduce((sum, { flavor }) => sum + flavor.ram, 0),
];

test("500 creates at once for a quota of 300 make exactly 300 servers, and creates, deletes and resizes that race never exceed it", async () => {
  const limits = { instances: 300, cores: 330, ram: -1 };
  expect((await cloud.call("PUT", quotas, { quota_set: limits })).status).toBe(200);
  const created = await forEachBounded([...Array(500).keys()], AT_A_TIME, async () => (await boot()).status);
  // A machine that is too busy answers some calls with 503, and may have accepted them.
  expect(created.filter((status) => ![202, 403, 503].includes(status))).toEqual([]);
  expect(await servers()).toHaveLength(300);
  expect(await used()).toEqual([300, 300, 300 * 64]);
  const all = (await settled()).filter(({ status }) => status === "ACTIVE").map(({ id }) => id);
  expect(all.length).toBeGreaterThanOrEqual(160);
  const [gone, resized] = [all.slice(0, 80), all.slice(80, 160)];
  const seen: (readonly number[])[] = [];
  const calls = [
    ...gone.map((id) => async () => (await cloud.call("DELETE", `/v2.1/servers/${id}`)).status),
    ...resized.map((id) => async () => {
      const { status } = await cloud.call("POST", `/v2.1/servers/${id}/action`, { resize: { flavorRef: "m" } });
      seen.push(await used());
      return status;
    }),
    ...[...Array(80).keys()].map(() => async () => (await boot()).status),
  ];
  // Each kind follows the others closely.
  const mixed = calls.map((call, at) => ({ call, turn: (at * 7) % 240 })).toSorted((a, b) => a.turn - b.turn);
  const statuses = await forEachBounded(mixed, AT_A_TIME, ({ call }) => call());
  expect(statuses.filter((status) => ![202, 204, 403, 503].includes(status))).toEqual([]);
  expect(statuses).toContain(403);
  expect(seen.filter(([instances = 0, cores = 0]) => instances > limits.instances || cores > limits.cores)).toEqual([]);

  const left = await settled();
  const resizes = left.filter(({ status }) => status === "VERIFY_RESIZE");
  expect(resizes.length).toBeGreaterThan(0);
  expect(resizes.every(({ flavor }) => flavor.vcpus === 2)).toBe(true);
  // What a resize that failed on its way has taken is given back about a minute later.
  await eventually(
    "the usage to be that of the servers",
    async () => isDeepStrictEqual(await used(), sums(await servers())),
    SLOWLY,
  );
});
