import { afterAll, beforeAll, expect, test } from "vitest";
import type { HostConfig } from "../../services/compute-agent/host-config.ts";
import { eventually } from "../rigs/eventually.ts";
import { startTestCloud, type TestCloud } from "../rigs/test-cloud.ts";

const host = (name: string, vcpus: number, rest: Partial<HostConfig> = {}): HostConfig => ({
  name,
  inventories: { VCPU: { total: vcpus }, MEMORY_MB: { total: vcpus * 1_024 }, DISK_GB: { total: 10_000 } },
  ...rest,
});
const CELLS = [
  { name: "cell-1", hosts: [host("one", 4)] },
  {
    name: "cell-2",
    hosts: [
      host("bad", 64, { fake: { outcome: "reschedule", reason: "broken" } }),
      host("good", 32),
      host("better", 32),
    ],
  },
];

let cloud: TestCloud;
beforeAll(async () => {
  cloud = await startTestCloud({ cells: CELLS, schedulers: 1, conductors: 1 });
  await call("POST", "/v2.1/flavors", { flavor: { id: "s", name: "s", vcpus: 1, ram: 64, disk: 1 } });
  await call("POST", "/v2.1/flavors", { flavor: { id: "m", name: "m", vcpus: 4, ram: 64, disk: 1 } });
});
afterAll(() => cloud?.close());

const call: TestCloud["call"] = (...asked) => cloud.call(...asked);

/** Boots a server and waits until it is ACTIVE or in ERROR, with a fault that says why. */
async function boot(flavorRef: string): Promise<{ id: string; status: string; host: string | null; fault: unknown }> {
  const server = { name: "x", flavorRef, imageRef: "", networks: "none" };
  const created = await call("POST", "/v2.1/servers", { server });
  if (created.status !== 202) throw new Error(JSON.stringify(created.json));
  const { id } = created.json.server;
  const read = async () => (await call("GET", `/v2.1/servers/${id}`)).json.server;
  await eventually("the server's end", async () => (await read()).status !== "BUILD");
  const shown = await read();
  return { id, status: shown.status, host: shown["OS-EXT-SRV-ATTR:host"], fault: shown.fault };
}

/** Whether the server was ever built on the host, with or without success. */
async function wasTriedOn(id: string, hostName: string): Promise<boolean> {
  const { instanceActions } = (await call("GET", `/v2.1/servers/${id}/os-instance-actions`)).json;
  const request = instanceActions.at(-1).request_id;
  const shown = await call("GET", `/v2.1/servers/${id}/os-instance-actions/${request}`);
  return shown.json.instanceAction.events.some((event: { host?: string }) => event.host === hostName);
}

async function setHost(name: string, body: unknown): Promise<void> {
  const { status, json } = await call("PUT", `/berth/v1/hosts/${name}`, body);
  expect([status, json]).toEqual([200, expect.anything()]);
}
const failuresOfBad = async (): Promise<number> => (await call("GET", "/berth/v1/hosts/bad")).json.build_failures;

test("a host that always fails is soon avoided, shows that, and is tried again after a reset", async () => {
  await setHost("one", { disabled: true });
  let avoided = 0;
  await eventually("three builds in a row that keep clear of it", async () => {
    const { id, status, fault } = await boot("s");
    expect([status, fault]).toEqual(["ACTIVE", undefined]);
    avoided = (await wasTriedOn(id, "bad")) ? 0 : avoided + 1;
    return avoided >= 3;
  });
  expect(await failuresOfBad()).toBeGreaterThan(0);
  await setHost("bad", { reset_failures: true });
  expect(await failuresOfBad()).toBe(0);
  await eventually("a build that tries it again", async () => wasTriedOn((await boot("s")).id, "bad"));
  await setHost("one", { disabled: false });
});

test("no server goes to a disabled host, and a ratio makes room on the remaining one", async () => {
  for (const name of ["bad", "good", "better"]) await setHost(name, { disabled: true, reason: "closed" });
  await eventually("the views know", async () => (await boot("m")).host === "one");
  await eventually("it is full", async () => (await boot("m")).status === "ERROR");
  const changed = await call("PUT", "/berth/v1/ratios", { host: "one", ratios: { VCPU: 3 } });
  expect(changed.json.changed).toMatchObject([{ cell: "cell-1", host: "one", ratios: { VCPU: 3 } }]);
  await eventually("there is room again", async () => (await boot("m")).host === "one");
  const { inventories } = (await call("GET", "/berth/v1/hosts/one")).json;
  const vcpu = inventories.find((one: { resource_class: string }) => one.resource_class === "VCPU");
  expect(vcpu).toMatchObject({ total: 4, capacity: 12, ratio_source: "host", reported_ratio: 1 });
});

test("a setting takes effect without a restart, and an invalid one changes nothing", async () => {
  for (const name of ["good", "better"]) await setHost(name, { disabled: false });
  await setHost("one", { disabled: true });
  await setHost("bad", { disabled: true });
  // A host that is lost for a moment, on a machine that has stood still, is no part of this test.
  await eventually("the open hosts take servers", async () => (await boot("s")).status === "ACTIVE");
  const spreads = { cpu_weight_multiplier: 0, ram_weight_multiplier: 0, disk_weight_multiplier: 0 };
  const packs = { ...spreads, host_subset_size: 1, own_slice_weight_multiplier: 0, cpu_weight_multiplier: -5 };
  expect((await call("PUT", "/berth/v1/settings", { set: packs })).status).toBe(200);
  const refused = await call("PUT", "/berth/v1/settings", { set: { host_subset_size: 0 } });
  expect(refused.status).toBe(400);
  // With packing, each server goes where the previous one went. Each is deleted as soon as the next one is placed, because boots are fast
  // enough to fill both hosts before the schedulers have read the setting.
  let [last, before, same] = ["", "", 0];
  const sixInARow = async () => {
    const { id, status, host: now, fault } = await boot("s");
    expect([status, fault]).toEqual(["ACTIVE", undefined]);
    if (before !== "") expect((await call("DELETE", `/v2.1/servers/${before}`)).status).toBe(204);
    same = now === last ? same + 1 : 1;
    [last, before] = [now ?? "", id];
    return same >= 6;
  };
  // Each check is a whole boot, which takes seconds on a busy machine.
  await eventually("six in a row on one host", sixInARow, { withinMs: 60_000 });
}, 120_000);
