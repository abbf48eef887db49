import { execFile } from "node:child_process";
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
    cloud = await Cloud.start();
    flavor = await cloud.compute.flavor();
    hosts = JSON.parse(await berth("host", "list", "--json")).map((one: { host: string }) => one.host);
  });
  afterAll(() => cloud?.close());
  beforeEach(() => cloud.beforeTest());

  const berth = async (...words: readonly string[]): Promise<string> =>
    (await promisify(execFile)(launcher, [...words, "--api", cloud.apiUrl])).stdout;
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
    const [one = "", ...others] = hosts;
    for (const host of others) await berth("host", "disable", host, "--reason", "closed");
    expect(await berth("settings", "set", "host_subset_size=1")).toBe("host_subset_size = 1\nversion 1\n");
    await expect(berth("settings", "set", "host_subset_size=0")).rejects.toThrow(/host_subset_size cannot be 0/);
    const homeOf = async () =>
      (await cloud.compute.endedOne(await cloud.compute.boot({ flavor })))["OS-EXT-SRV-ATTR:host"];
    await eventually("all know that one host alone is open", async () => (await homeOf()) === one);
    expect([await homeOf(), await homeOf()]).toEqual([one, one]);
    for (const host of others) await berth("host", "enable", host);
  });
});
