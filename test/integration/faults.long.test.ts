import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LivePicture } from "../../services/api/dashboard/live-picture.ts";
import { eventually } from "../rigs/eventually.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";

const hostsOf = (cell: string) =>
  ["a", "b", "c", "d"].map((name) => ({
    name: `${cell}-${name}`,
    inventories: { VCPU: { total: 16 }, MEMORY_MB: { total: 16_384 }, DISK_GB: { total: 10_000 } },
  }));
const UP = 1;

describe("faults of a cloud in one process", () => {
  let cloud: TestCloud;
  beforeAll(async () => {
    const cells = ["one", "two"].map((name) => ({ name, hosts: hostsOf(name) }));
    cloud = await startTestCloud({ cells, schedulers: 1, conductors: 2, dashboard: true });
    const flavor = { id: "s", name: "s", vcpus: 1, ram: 64, disk: 1 };
    await cloud.call("POST", "/v2.1/flavors", { flavor });
  });
  afterAll(() => cloud?.close());

  const set = async (fault: object) => (await cloud.call("PUT", "/berth/v1/faults", fault)).status;
  const look = async (): Promise<LivePicture> => (await cloud.call("GET", "/berth/v1/live/picture")).json;
  const stateOf = async (host: string) => (await look()).hosts.find((row) => row[1] === host)?.[2];

  /** The servers are created in separate calls, because with so few hosts servers of one call would take each other's alternates. */
  function boot(servers: number): Promise<readonly string[]> {
    const server = { name: "web", flavorRef: "s", imageRef: "", networks: "none" };
    const calls = Array.from({ length: servers }, () => cloud.call("POST", "/v2.1/servers", { server }));
    return Promise.all(calls.map(async (call): Promise<string> => (await call).json.server.id));
  }
  const settled = (ids: readonly string[]) =>
    eventually("the servers to be settled", async () => {
      const { servers } = (await cloud.call("GET", "/v2.1/servers/detail")).json;
      const mine = servers.filter(({ id }: { id: string }) => ids.includes(id));
      return mine.every(({ status }: { status: string }) => !["BUILD", "UNKNOWN"].includes(status)) && mine;
    });

  test("a host that is taken down is seen as down while the others stay up, and comes back", async () => {
    await look();
    expect(await set({ host: "one-b", broken: true })).toBe(200);
    await eventually("the host to be down", async () => (await stateOf("one-b")) === 0);
    const others = (await look()).hosts.filter((row) => row[1] !== "one-b");
    expect(others.map((row) => row[2])).toEqual(others.map(() => UP));
    await set({ host: "one-b", broken: false });
    await eventually("the host to be up", async () => (await stateOf("one-b")) === UP);
  });

  test("a share of the builds fails until it is healed, and the others end on alternates", async () => {
    await set({ fail_share: 0.5, build_ms: 0 });
    const servers = await settled(await boot(12));
    expect(servers).toHaveLength(12);
    await eventually("the hops", async () => (await look()).figures.counts.hops > 0);
    await cloud.call("DELETE", "/berth/v1/faults");
    const calm = await settled(await boot(4));
    expect(calm.map(({ status }: { status: string }) => status)).toEqual(["ACTIVE", "ACTIVE", "ACTIVE", "ACTIVE"]);
    for (const { id } of calm) {
      const { tasks } = (await cloud.call("GET", `/berth/v1/explain/${id}`)).json;
      expect(tasks[0].hops).toEqual([]);
    }
  });

  test("the tasks of a killed conductor are carried on by another, and it comes back under its name", async () => {
    await set({ fail_share: 0, build_ms: 500 });
    const ids = await boot(8);
    expect(await set({ conductor: "one-conductor-1", broken: true })).toBe(200);
    expect((await look()).figures.faults?.conductorsKilled).toEqual(["one-conductor-1"]);
    const servers = await settled(ids);
    expect(new Set(servers.map(({ status }: { status: string }) => status))).toEqual(new Set(["ACTIVE"]));
    await cloud.call("DELETE", "/berth/v1/faults");
    await eventually("two conductors that live", async () => {
      const cell = (await look()).cells.find(({ name }) => name === "one");
      return cell?.conductors.filter(({ alive }) => alive).length === 2;
    });
  });

  test("a cell that is cut off finishes its tasks, and nothing is lost", async () => {
    await set({ fail_share: 0, build_ms: 400 });
    const before = await boot(6);
    await eventually("all to be in a cell", async () => {
      const { paths } = await look();
      return before.every((id) => paths.some((path) => path.id === id && path.cell !== null));
    });
    await set({ cell: "two", broken: true });
    await eventually("the silence", async () => (await look()).cells.some(({ answers }) => !answers));
    const running = async () => {
      const guests = await Promise.all(cloud.cells.map((cell) => cell.runningGuests()));
      return guests.flatMap((of) => [...of.values()].flat().map(({ serverUuid }) => serverUuid));
    };
    await eventually("the guests in both cells", async () => {
      const ids = await running();
      return before.every((id) => ids.includes(id));
    });
    // A request that was assigned to the cell just before waits for it; the others go elsewhere.
    const during = await boot(2);
    await set({ cell: "two", broken: false });
    const servers = await settled([...before, ...during]);
    expect(new Set(servers.map(({ status }: { status: string }) => status))).toEqual(new Set(["ACTIVE"]));
    await cloud.call("DELETE", "/berth/v1/faults");
  });

  test("the laws hold after all of it, as the audit for the dashboard finds", async () => {
    const laws = await eventually("a reading", async () => (await look()).figures.laws);
    expect(laws.broken).toEqual([]);
  });

  test("refuse targets that do not exist, and are accepted only one at a time", async () => {
    expect(await set({ host: "nobody", broken: true })).toBe(404);
    expect(await set({ conductor: "nobody", broken: true })).toBe(404);
    expect(await set({ cell: "nobody", broken: true })).toBe(404);
    for (const wrong of [
      {},
      { host: "one-a" },
      { host: "one-a", cell: "one", broken: true },
      { host: "one-a", broken: true, build_ms: 100 },
      { fail_share: 0.5, build_ms: 0, broken: true },
      { fail_share: 2, build_ms: 0 },
    ])
      expect(await set(wrong)).toBe(400);
  });
});
