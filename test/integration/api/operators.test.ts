import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { hostTree } from "../../contract/cell-fixtures.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start();
});
afterEach(() => rig.close());

describe("settings", () => {
  const put = (body: unknown) => rig.put("/berth/v1/settings", body);

  test("are changed and removed option by option", async () => {
    expect((await rig.get("/berth/v1/settings")).json()).toMatchObject({
      ...{ version: 0, set: {} },
      effective: { host_subset_size: 5, ram_weight_multiplier: 1 },
    });
    const changed = await put({ set: { host_subset_size: 1, ram_weight_multiplier: -2 } });
    expect(changed.json()).toMatchObject({
      ...{ version: 1, set: { host_subset_size: 1, ram_weight_multiplier: -2 } },
      effective: { host_subset_size: 1, ram_weight_multiplier: -2 },
    });
    expect((await put({ unset: ["host_subset_size"] })).json().set).toEqual({ ram_weight_multiplier: -2 });
  });

  test("are refused with every reason when they are invalid, and the old ones stay", async () => {
    await put({ set: { host_subset_size: 2 } });
    const refused = await put({ set: { host_subset_size: 0, no_such_option: 1, ram_weight_multiplier: 3 } });
    expect(refused.statusCode).toBe(400);
    expect(refused.json().badRequest.message).toMatch(/host_subset_size cannot be 0.*no option no_such_option/);
    expect((await put({ unset: ["nothing"] })).statusCode).toBe(400);
    expect((await put({ version: 7, set: {} })).statusCode).toBe(409);
    expect((await rig.get("/berth/v1/settings")).json()).toMatchObject({ version: 1, set: { host_subset_size: 2 } });
  });

  test("are not lost when many are written at once", async () => {
    const options = ["ram", "cpu", "disk", "pci"].map((name) => `${name}_weight_multiplier`);
    await Promise.all(options.map((option, index) => put({ set: { [option]: index } })));
    const { version, set } = (await rig.get("/berth/v1/settings")).json();
    expect([version, Object.keys(set).sort()]).toEqual([4, options.sort()]);
  });
});

describe("ratios", () => {
  const put = (body: unknown) => rig.put("/berth/v1/ratios", body);
  const vcpu = async (host: string) => {
    const { inventories } = (await rig.get(`/berth/v1/hosts/${host}`)).json();
    const { allocation_ratio, ratio_source, capacity } = inventories[0];
    return [allocation_ratio, ratio_source, capacity];
  };

  test("of a host override those of its aggregates, which override its agent's", async () => {
    for (const name of ["big", "small"]) {
      const { id } = (await rig.post("/v2.1/os-aggregates", { aggregate: { name } })).json().aggregate;
      await rig.post(`/v2.1/os-aggregates/${id}/action`, { add_host: { host: "host-1" } });
    }
    expect(await vcpu("host-1")).toEqual([1, "agent", 8]);
    await put({ aggregate: "big", ratios: { VCPU: 8 } });
    expect(await vcpu("host-1")).toEqual([8, "aggregate big", 64]);
    await put({ aggregate: "small", ratios: { VCPU: 4 } });
    expect(await vcpu("host-1")).toEqual([4, "aggregate small", 32]);
    await put({ host: "host-1", ratios: { VCPU: 2.5 } });
    expect(await vcpu("host-1")).toEqual([2.5, "host", 20]);
    await rig.cell("north").ledger.putTrees([hostTree(1, 16)]);
    expect(await vcpu("host-1")).toEqual([2.5, "host", 40]);
    expect((await rig.get("/berth/v1/ratios")).json()).toMatchObject({
      aggregates: [
        { name: "big", ratios: { VCPU: 8 } },
        { name: "small", ratios: { VCPU: 4 } },
      ],
      hosts: [{ host: "host-1", ratios: { VCPU: 2.5 } }],
    });
    await put({ host: "host-1", ratios: { VCPU: null } });
    await put({ aggregate: "small", ratios: { VCPU: null } });
    expect(await vcpu("host-1")).toEqual([8, "aggregate big", 128]);
    await put({ aggregate: "big", ratios: { VCPU: null } });
    expect(await vcpu("host-1")).toEqual([1, "agent", 16]);
  });

  test("appear and disappear with a host's membership in an aggregate", async () => {
    const { id } = (await rig.post("/v2.1/os-aggregates", { aggregate: { name: "big" } })).json().aggregate;
    await put({ aggregate: "big", ratios: { VCPU: 8 } });
    await rig.post(`/v2.1/os-aggregates/${id}/action`, { add_host: { host: "host-1" } });
    expect(await vcpu("host-1")).toEqual([8, "aggregate big", 64]);
    await rig.post(`/v2.1/os-aggregates/${id}/action`, { remove_host: { host: "host-1" } });
    expect(await vcpu("host-1")).toEqual([1, "agent", 8]);
  });

  test("are refused for unknown targets and invalid numbers", async () => {
    expect((await put({ host: "nobody", ratios: { VCPU: 2 } })).statusCode).toBe(404);
    expect((await put({ aggregate: "nobody", ratios: { VCPU: 2 } })).statusCode).toBe(404);
    expect((await put({ host: "host-1", ratios: { VCPU: 0 } })).statusCode).toBe(400);
    expect((await put({ host: "host-1", ratios: { vcpu: 1 } })).statusCode).toBe(400);
    expect((await put({ ratios: { VCPU: 1 } })).statusCode).toBe(400);
  });
});

describe("hosts", () => {
  test("are shown with all that is known about them, and their failures are reset", async () => {
    const { id } = (
      await rig.post("/v2.1/os-aggregates", { aggregate: { name: "east", availability_zone: "zone-east" } })
    ).json().aggregate;
    await rig.post(`/v2.1/os-aggregates/${id}/action`, { add_host: { host: "host-1" } });
    await rig.bootActive("north", 1);
    await rig.softState.recordBuildFailure("north", "host-1");
    await rig.softState.recordBuildFailure("north", "host-1");
    const show = async () => (await rig.get("/berth/v1/hosts/host-1")).json();
    expect(await show()).toMatchObject({
      ...{ host: "host-1", cell: "north", zone: "zone-east", state: "up", status: "enabled", servers: 1 },
      ...{ aggregates: [{ id, name: "east" }], build_failures: 2, build_failures_half_life_seconds: 900 },
      inventories: [{ resource_class: "VCPU", total: 8, used: 1, ratio_source: "agent", reported_ratio: null }],
    });
    await rig.put("/berth/v1/hosts/host-1", { reset_failures: true, disabled: true, reason: "smells" });
    expect(await show()).toMatchObject({ build_failures: 0, status: "disabled", disabled_reason: "smells" });
    expect((await rig.get("/berth/v1/hosts")).json().hosts).toHaveLength(6);
    expect((await rig.get("/berth/v1/hosts/nobody")).statusCode).toBe(404);
  });

  test("of a cell that does not answer are not reported as missing", async () => {
    rig.cell("south").dead = true;
    expect((await rig.get("/berth/v1/hosts/host-4")).statusCode).toBe(503);
    expect((await rig.get("/berth/v1/hosts/host-1")).statusCode).toBe(200);
  });
});
