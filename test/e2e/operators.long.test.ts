import { execFile, spawn } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { eventually } from "../rigs/eventually.ts";
import { Cloud } from "./cloud.ts";

const launcher = join(import.meta.dirname, "../../bin/berth");

describe("operators' settings in a cloud of separate processes", () => {
  let cloud: Cloud;
  let flavor: string;
  let hosts: readonly string[];

  beforeAll(async () => {
    // Operators reach the hosts of all cells by the same calls, and each further cell has a third of the cloud's processes.
    cloud = await Cloud.start({ cells: ["cell-1"] });
    flavor = await cloud.compute.flavor();
    hosts = JSON.parse(await berth("host", "list", "--json")).map((one: { host: string }) => one.host);
  });
  afterAll(() => cloud?.close());
  beforeEach(() => cloud.beforeTest());

  const berth = async (...words: readonly string[]): Promise<string> =>
    (await promisify(execFile)(launcher, [...words, "--api", cloud.apiUrl])).stdout;
  /** Does as `berth host disable` and `enable` do, without the start of a command for each host. */
  const setDisabled = async (names: readonly string[], disabled: boolean): Promise<void> => {
    for (const host of names) {
      const answer = await fetch(`${cloud.apiUrl}/berth/v1/hosts/${host}`, {
        ...{ method: "PUT", headers: { "content-type": "application/json" } },
        body: JSON.stringify({ disabled }),
      });
      expect([host, answer.status]).toEqual([host, 200]);
    }
  };
  const showHost = async (host: string) => JSON.parse(await berth("host", "show", host, "--json"));
  const aggregate = async (name: string, zone: string | null, host: string): Promise<void> => {
    const made = await cloud.compute.call("POST", "/os-aggregates", { aggregate: { name, availability_zone: zone } });
    const { id } = ((await made.json()) as { aggregate: { id: number } }).aggregate;
    const added = await cloud.compute.call("POST", `/os-aggregates/${id}/action`, { add_host: { host } });
    expect(added.status).toBe(200);
  };

  test("a server that asks for a zone goes to that zone's host", async () => {
    const [host = ""] = hosts;
    await aggregate("east", "zone-east", host);
    await eventually("a server in the zone", async () => {
      const server = await cloud.compute.endedOne(await cloud.compute.boot({ flavor, zone: "zone-east" }));
      return server.status === "ACTIVE";
    });
    const server = await cloud.compute.endedOne(await cloud.compute.boot({ flavor, zone: "zone-east" }));
    expect([server["OS-EXT-SRV-ATTR:host"], server["OS-EXT-AZ:availability_zone"]]).toEqual([host, "zone-east"]);
    expect(await showHost(host)).toMatchObject({ zone: "zone-east", aggregates: [{ name: "east" }] });
    expect(await berth("sync-aggregates", "--dry-run")).toBe("0 hosts differ\n");
  });

  test("an aggregate's ratio is on its host's inventories, even after its agent has reported again", async () => {
    const host = hosts.at(-1) ?? "";
    await aggregate("dense", null, host);
    await berth("ratios", "set", "--aggregate", "dense", "--vcpu", "8");
    const vcpuOf = async () =>
      (await showHost(host)).inventories.find((one: { resource_class: string }) => one.resource_class === "VCPU");
    expect(await vcpuOf()).toMatchObject({ allocation_ratio: 8, ratio_source: "aggregate dense" });
    for (const cell of cloud.cells) for (const agent of cell.agents) await agent.kill();
    await cloud.makeWhole();
    expect(await vcpuOf()).toMatchObject({ allocation_ratio: 8, ratio_source: "aggregate dense" });
  });

  test("a disabled host gets no more servers, and a setting reaches running schedulers", async () => {
    const [one = "", first = "", ...others] = hosts;
    await berth("host", "disable", first, "--reason", "closed");
    await setDisabled(others, true);
    expect(await berth("settings", "set", "host_subset_size=1")).toBe("host_subset_size = 1\nversion 1\n");
    await expect(berth("settings", "set", "host_subset_size=0")).rejects.toThrow(/host_subset_size cannot be 0/);
    const homeOf = async () =>
      (await cloud.compute.endedOne(await cloud.compute.boot({ flavor })))["OS-EXT-SRV-ATTR:host"];
    await eventually("all know that one host alone is open", async () => (await homeOf()) === one);
    expect([await homeOf(), await homeOf()]).toEqual([one, one]);
    await berth("host", "enable", first);
    await setDisabled(others, false);
  });

  /** Boots servers on the host while all others are disabled. Their moves take some seconds, so that they can be interrupted. */
  const bootOn = async (host: string, count: number): Promise<readonly string[]> => {
    const others = hosts.filter((other) => other !== host);
    await setDisabled(others, true);
    const homeOf = async () =>
      (await cloud.compute.endedOne(await cloud.compute.boot({ flavor })))["OS-EXT-SRV-ATTR:host"];
    await eventually("all know that one host alone is open", async () => (await homeOf()) === host);
    const ids = await cloud.compute.bootMany(count, { flavor, fake: { duration_ms: 500, hand_off_ms: 2_000 } });
    const homes = (await cloud.compute.ended(ids)).map((server) => server["OS-EXT-SRV-ATTR:host"]);
    expect(new Set(homes)).toEqual(new Set([host]));
    await setDisabled(others, false);
    return ids;
  };
  const oneMoves = (ids: readonly string[]) => async () => {
    const shown = await Promise.all(ids.map((id) => cloud.compute.show(id)));
    return shown.some((server) => server?.["OS-EXT-STS:task_state"] === "resize_migrating");
  };
  const expectEmpty = async (host: string) => {
    const used = (await showHost(host)).inventories.map((one: { used: number }) => one.used);
    expect(new Set(used)).toEqual(new Set([0]));
  };

  test("a drain that is killed while its servers move is completed by the next one, even if the api died, too", async () => {
    const host = hosts[1] ?? "";
    const ids = await bootOn(host, 4);
    const killed = spawn(launcher, ["host", "drain", host, "--api", cloud.apiUrl], { stdio: "ignore" });
    await eventually("a move", oneMoves(ids), { everyMs: 50, withinMs: 60_000 });
    killed.kill("SIGKILL");
    await cloud.api.kill();
    await cloud.makeWhole();
    expect(await berth("host", "drain", host)).toContain(", 0 stayed");
    for (const server of await cloud.compute.ended(ids)) expect(server["OS-EXT-SRV-ATTR:host"]).not.toBe(host);
    await expectEmpty(host);
    await berth("host", "enable", host);
    await cloud.expectCleanAudit();
  });

  test("servers stay on a host that falls silent while it is drained, and leave it when it is back", async () => {
    const host = hosts[1] ?? "";
    const ids = await bootOn(host, 2);
    const agent = cloud.cells.flatMap((cell) => cell.agents).find((one) => one.hosts.includes(host));
    const drain = berth("host", "drain", host).catch((error: { code: number; stdout: string }) => error);
    await eventually("a move", oneMoves(ids), { everyMs: 50, withinMs: 60_000 });
    await agent?.kill();
    expect(await drain).toMatchObject({ code: 1, stdout: expect.stringContaining("its move failed") });
    const again = await berth("host", "drain", host).catch((error: { code: number; stderr: string }) => error);
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining("so it cannot hand over its") });
    await cloud.makeWhole();
    expect(await berth("host", "drain", host)).toContain(", 0 stayed");
    await expectEmpty(host);
    await berth("host", "enable", host);
    await cloud.expectCleanAudit();
  });

  test("the service of a stopped agent is deleted with its host, which is new when the agent is back; one with servers is not", async () => {
    // The servers of the zone can go to no other host than the first one.
    const agent = cloud.cells.flatMap((cell) => cell.agents).find((one) => !one.hosts.includes(hosts[0] ?? ""));
    const [host = "", other = ""] = agent?.hosts ?? [];
    const serviceOf = async (name: string): Promise<string | undefined> => {
      const answer = await cloud.compute.call("GET", `/os-services?binary=nova-compute&host=${name}`);
      return ((await answer.json()) as { services: readonly { id: string }[] }).services[0]?.id;
    };
    const remove = async (name: string) =>
      (await cloud.compute.call("DELETE", `/os-services/${await serviceOf(name)}`)).status;
    const ids = await bootOn(other, 1);
    // On a busy machine a move may fail, and the server stays until the next drain.
    await eventually("no server to stay on the host", () =>
      berth("host", "drain", host).then(
        (told) => told.includes(", 0 stayed"),
        () => false,
      ),
    );
    expect(await remove(host)).toBe(409);
    await agent?.kill();
    expect(await remove(host)).toBe(204);
    expect(await serviceOf(host)).toBeUndefined();
    expect(await remove(other)).toBe(409);
    await cloud.makeWhole();
    await eventually("the host is known again", async () => (await serviceOf(host)) !== undefined);
    await expectEmpty(host);
    for (const server of await cloud.compute.ended(ids)) expect(server["OS-EXT-SRV-ATTR:host"]).toBe(other);
    await bootOn(host, 1);
    await cloud.expectCleanAudit();
  });
});
