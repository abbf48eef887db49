import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isClean } from "../../audit/audit-report.ts";
import { auditTwice } from "../../audit/audit-twice.ts";
import { conductorSettingNames } from "../../audit/conductor-setting-names.ts";
import type { HostConfig } from "../../services/compute-agent/host-config.ts";
import { eventually } from "../rigs/eventually.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";

const CELLS = ["cell-1", "cell-2"];
const HOSTS = 50;
const SERVERS = 50;

/** Hosts that could each take all servers. Two of each cell fail their first build. */
function hostsOf(cell: string): HostConfig[] {
  return Array.from({ length: HOSTS / CELLS.length }, (_, index) => ({
    name: `${cell}-host-${index}`,
    inventories: { VCPU: { total: 64 }, MEMORY_MB: { total: 65_536 }, DISK_GB: { total: 1_000 } },
    ...(index % 12 === 3 && { fake: { outcome: "reschedule" as const, first: 1, reason: "a cold start" } }),
  }));
}

interface GroupAnswer {
  readonly server_group: { readonly id: string; readonly members: readonly string[] };
}
interface ServerAnswer {
  readonly server: {
    readonly status: string;
    readonly "OS-EXT-SRV-ATTR:host": string | null;
    readonly fault?: { readonly message: string };
  };
}

describe("server groups with four schedulers on real databases", () => {
  let cloud: TestCloud;
  beforeAll(async () => {
    cloud = await startTestCloud({
      cells: CELLS.map((name) => ({ name, hosts: hostsOf(name) })),
      schedulers: 4,
      conductors: 2,
    });
    await call("POST", "/flavors", { flavor: { id: "small", name: "small", vcpus: 1, ram: 64, disk: 0 } });
  }, 120_000);
  afterAll(() => cloud?.close());

  async function call<Answer>(method: string, path: string, body?: unknown): Promise<Answer> {
    const { status, json } = await cloud.call(method, `/v2.1${path}`, body, 64);
    if (status >= 400) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(json)}`);
    return json as Answer;
  }
  const createGroup = async (policy: string, rules?: object): Promise<string> =>
    (
      await call<GroupAnswer>("POST", "/os-server-groups", {
        server_group: { name: policy, policy, ...(rules && { rules }) },
      })
    ).server_group.id;
  const server = (change: object = {}) => ({
    name: "web",
    flavorRef: "small",
    networks: "none",
    imageRef: "",
    ...change,
  });
  const boot = (group: string, change: object = {}) =>
    call("POST", "/servers", { server: server(change), "os:scheduler_hints": { group } });
  interface Shown {
    readonly id: string;
    readonly status: string;
    readonly host: string;
    readonly fault: string;
  }
  /** The group's members once all of them have ended. */
  async function ended(group: string): Promise<Shown[]> {
    const { members } = (await call<GroupAnswer>("GET", `/os-server-groups/${group}`)).server_group;
    const shown: Shown[] = [];
    for (const id of members) {
      await eventually(
        `server ${id} to end`,
        async () => {
          const { server } = await call<ServerAnswer>("GET", `/servers/${id}`);
          if (server.status === "BUILD") return false;
          const host = server["OS-EXT-SRV-ATTR:host"] ?? "";
          return shown.push({ id, status: server.status, host, fault: server.fault?.message ?? "" }) > 0;
        },
        { everyMs: 100, withinMs: 60_000 },
      );
    }
    return shown;
  }
  async function removeAll(group: string): Promise<void> {
    const { members } = (await call<GroupAnswer>("GET", `/os-server-groups/${group}`)).server_group;
    await Promise.all(members.map((id: string) => call("DELETE", `/servers/${id}`)));
  }

  test(`${SERVERS} concurrent creates into an anti-affinity group over ${HOSTS} hosts, some of which fail, fill ${HOSTS} hosts`, async () => {
    const group = await createGroup("anti-affinity");
    await Promise.all(Array.from({ length: SERVERS }, () => boot(group)));
    // A server whose host fails hops while others are placed. A request that meanwhile finds all hosts occupied waits until that server has
    // settled.
    const servers = await ended(group);
    expect(servers.filter(({ status }) => status !== "ACTIVE").map(({ fault }) => fault)).toEqual([]);
    expect(new Set(servers.map(({ host }) => host)).size).toBe(HOSTS);
    await removeAll(group);
  }, 120_000);

  test("concurrent creates into an affinity group end on one host", async () => {
    const group = await createGroup("affinity");
    await Promise.all(Array.from({ length: 20 }, () => boot(group)));
    const servers = await ended(group);
    expect(servers.filter(({ status }) => status !== "ACTIVE").map(({ fault }) => fault)).toEqual([]);
    expect(new Set(servers.map(({ host }) => host)).size).toBe(1);
    await removeAll(group);
  }, 120_000);

  test("of one call for one more server of a group than there are hosts, that one ends in ERROR", async () => {
    const group = await createGroup("anti-affinity");
    await boot(group, { min_count: HOSTS, max_count: HOSTS + 1 });
    const servers = await ended(group);
    expect(servers.filter(({ status }) => status === "ERROR").map(({ fault }) => fault)).toEqual([
      expect.stringMatching(/^No valid host/),
    ]);
    const active = servers.filter(({ status }) => status === "ACTIVE");
    expect(new Set(active.map(({ host }) => host)).size).toBe(HOSTS);
    await removeAll(group);
  }, 120_000);

  test("of one call whose minimum exceeds the number of hosts, no server is built, and nothing is held", async () => {
    const group = await createGroup("anti-affinity");
    await boot(group, { min_count: HOSTS + 1, max_count: HOSTS + 1 });
    const servers = await ended(group);
    expect(servers.map(({ status }) => status)).toEqual(Array.from({ length: HOSTS + 1 }, () => "ERROR"));
    const audit = { pauseMs: 0, patienceMs: 60_000, conductorSettings: conductorSettingNames };
    await eventually(
      "what was given back to be gone, and the audit to find nothing",
      async () => isClean(await auditTwice({ apiUrl: cloud.databaseUrl, cells: cloud.cells, ...audit })),
      { everyMs: 250, withinMs: 60_000 },
    );
  }, 120_000);
});
