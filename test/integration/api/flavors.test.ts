import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start();
});
afterEach(() => rig.close());

const put = (url: string, body: unknown) =>
  rig.call({ method: "PUT", url, headers: { "content-type": "application/json" }, payload: JSON.stringify(body) });

describe("/flavors", () => {
  it("creates, shows, lists and deletes a flavor", async () => {
    const flavor = {
      name: "gpu",
      id: "g1",
      ram: "2048",
      vcpus: 4,
      disk: 20,
      "OS-FLV-EXT-DATA:ephemeral": 1,
      swap: 5,
      rxtx_factor: 2.0,
      "os-flavor-access:is_public": true,
    };
    const created = await rig.post("/v2.1/flavors", { flavor });
    expect(created.statusCode).toBe(200);
    expect(created.json().flavor).toEqual({
      ...flavor,
      ram: 2048,
      "OS-FLV-DISABLED:disabled": false,
      links: [
        { rel: "self", href: "http://localhost:80/v2.1/flavors/g1" },
        { rel: "bookmark", href: "http://localhost:80/flavors/g1" },
      ],
    });
    expect((await rig.get("/v2.1/flavors/g1")).json()).toEqual(created.json());
    expect((await rig.get("/v2.1/flavors")).json().flavors.map((one: { id: string }) => one.id)).toEqual(["1", "g1"]);
    expect((await rig.get("/v2.1/flavors/detail?minRam=1024")).json().flavors).toHaveLength(1);
    expect((await rig.get("/v2.1/flavors/detail?sort_key=memory_mb&sort_dir=desc&limit=1")).json()).toMatchObject({
      flavors: [{ id: "g1" }],
      flavors_links: [{ rel: "next", href: expect.stringContaining("marker=g1") }],
    });
    expect((await rig.delete("/v2.1/flavors/g1")).statusCode).toBe(202);
    expect((await rig.get("/v2.1/flavors/g1")).statusCode).toBe(404);
    expect((await rig.delete("/v2.1/flavors/g1")).json()).toMatchObject({ itemNotFound: { code: 404 } });
  });

  it("generates an id when none is given, and shows the fields of newer microversions", async () => {
    const latest = { "openstack-api-version": "compute latest" };
    const created = await rig.post(
      "/v2.1/flavors",
      { flavor: { name: "n", ram: 1, vcpus: 1, disk: 0, description: "d" } },
      latest,
    );
    expect(created.json().flavor).toMatchObject({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      swap: 0,
      description: "d",
      extra_specs: {},
    });
    const old = await rig.get(`/v2.1/flavors/${created.json().flavor.id}`);
    expect(old.json().flavor.swap).toBe("");
    expect(old.json().flavor).not.toHaveProperty("extra_specs");
  });

  const flavor = { name: "n", ram: 1, vcpus: 1, disk: 0 };
  it.each([
    [{}, /'flavor' is a required property/],
    [{ flavor: { ...flavor, ram: undefined } }, /'ram' is a required property/],
    [{ flavor: { ...flavor, ram: 0 } }, /flavor\.ram\. Value: 0/],
    [{ flavor: { ...flavor, ram: "0" } }, /ram\. Value: 0/],
    [{ flavor: { ...flavor, vcpus: 1.5 } }, /vcpus/],
    [{ flavor: { ...flavor, disk: -1 } }, /disk/],
    [{ flavor: { ...flavor, disk: "9999999999" } }, /disk/],
    [{ flavor: { ...flavor, id: " x" } }, /id/],
    [{ flavor: { ...flavor, name: "" } }, /name/],
    [{ flavor: { ...flavor, rxtx_factor: 0 } }, /rxtx_factor/],
    [{ flavor: { ...flavor, "os-flavor-access:is_public": "maybe" } }, /is_public/],
    [{ flavor: { ...flavor, description: "d" } }, /'description' was unexpected/],
    [{ flavor: { ...flavor, colour: "red" } }, /'colour' was unexpected/],
  ])("refuses %j with 400", async (body, message) => {
    const answer = await rig.post("/v2.1/flavors", body);
    expect(answer.json()).toEqual({ badRequest: { code: 400, message: expect.stringMatching(message) } });
    expect(await rig.store.flavors()).toHaveLength(1);
  });

  it("refuses a used id or name with 409", async () => {
    for (const taken of [
      { ...flavor, id: "1" },
      { ...flavor, name: "m1.tiny" },
    ]) {
      const answer = await rig.post("/v2.1/flavors", { flavor: taken });
      expect(answer.json()).toMatchObject({ conflictingRequest: { code: 409 } });
    }
  });

  it("lets only admins change anything", async () => {
    await rig.close();
    rig = await ApiRig.start({ auth: "noauth2" });
    const ann = { "x-auth-token": "ann:blue" };
    expect((await rig.post("/v2.1/flavors", { flavor }, ann)).statusCode).toBe(403);
    expect((await rig.delete("/v2.1/flavors/1", ann)).statusCode).toBe(403);
    expect((await rig.post("/v2.1/flavors/1/os-extra_specs", { extra_specs: { a: "1" } }, ann)).statusCode).toBe(403);
    expect((await rig.delete("/v2.1/flavors/1/os-extra_specs/a", ann)).statusCode).toBe(403);
    expect((await rig.get("/v2.1/flavors/1", ann)).statusCode).toBe(200);
  });
});

describe("/flavors/{id}/os-extra_specs", () => {
  const path = "/v2.1/flavors/1/os-extra_specs";
  const specs = async () => (await rig.get(path)).json().extra_specs;

  it("adds, changes, shows and deletes extra specs", async () => {
    const added = await rig.post(path, {
      extra_specs: { "resources1:VGPU": 2, "trait1:CUSTOM_T4": "required", group_policy: "none" },
    });
    expect(added.json()).toEqual({
      extra_specs: { "resources1:VGPU": "2", "trait1:CUSTOM_T4": "required", group_policy: "none" },
    });
    expect((await put(`${path}/group_policy`, { group_policy: "isolate" })).json()).toEqual({
      group_policy: "isolate",
    });
    expect((await rig.get(`${path}/group_policy`)).json()).toEqual({ group_policy: "isolate" });
    expect((await rig.delete(`${path}/trait1:CUSTOM_T4`)).statusCode).toBe(200);
    expect(await specs()).toEqual({ "resources:VCPU": "1", "resources1:VGPU": "2", group_policy: "isolate" });
  });

  it.each([
    [{ "resources:VCPU": "none" }, /resources:VCPU/],
    [{ "resources:VCPU": "-1" }, /resources:VCPU/],
    [{ "resources:vcpu": "1" }, /resources:vcpu/],
    [{ "trait:HW_CPU_X86_AVX2": "perhaps" }, /trait:HW_CPU_X86_AVX2/],
    [{ group_policy: "together" }, /group_policy/],
    [{ "a/b": "1" }, /a\/b/],
    [{ a: "x\u0000" }, /a/],
    [{ a: "\ud800" }, /a/],
    [{ a: true }, /a/],
    [{ a: "x".repeat(256) }, /a/],
  ])("refuses %j with 400 and leaves the flavor as it was", async (extra, message) => {
    const answer = await rig.post(path, { extra_specs: { fine: "1", ...extra } });
    expect(answer.json()).toEqual({ badRequest: { code: 400, message: expect.stringMatching(message) } });
    expect(await specs()).toEqual({ "resources:VCPU": "1" });
  });

  it("checks names and values in Nova's namespaces from 2.86 on", async () => {
    const at = (minor: number) => ({ "openstack-api-version": `compute 2.${minor}` });
    const told = async (minor: number, extra_specs: Record<string, string>) => {
      const answer = await rig.post(path, { extra_specs }, at(minor));
      return answer.json().badRequest?.message ?? answer.statusCode;
    };
    expect(await told(86, { fine: "1", "hw:zz": "1" })).toBe(
      "Validation failed; extra spec 'hw:zz' does not appear to be a valid extra spec.",
    );
    expect(await told(86, { "hw:boot_menu": "perhaps" })).toBe(
      "Validation failed; 'perhaps' is not a valid boolean-like value.",
    );
    const one = { method: "PUT", url: `${path}/hw:zz`, payload: { "hw:zz": "1" }, headers: at(104) } as const;
    expect((await rig.call(one)).statusCode).toBe(400);
    expect(await specs()).toEqual({ "resources:VCPU": "1" });
    expect(await told(86, { "hw:boot_menu": "true", "vendor:zz": "1" })).toBe(200);
    expect(await told(85, { "hw:zz": "1" })).toBe(200);
  });

  it("refuses a body that does not match the key in the path", async () => {
    expect((await put(`${path}/a`, { b: "1" })).json()).toMatchObject({
      badRequest: { message: "Request body and URI mismatch" },
    });
    expect((await put(`${path}/a`, { a: "1", b: "1" })).statusCode).toBe(400);
    expect((await put(`${path}/a`, {})).statusCode).toBe(400);
  });

  it("answers 404 for an unknown flavor or key", async () => {
    expect((await rig.get("/v2.1/flavors/2/os-extra_specs")).statusCode).toBe(404);
    expect((await rig.post("/v2.1/flavors/2/os-extra_specs", { extra_specs: { a: "1" } })).statusCode).toBe(404);
    expect((await rig.get(`${path}/nope`)).statusCode).toBe(404);
    expect((await rig.delete(`${path}/nope`)).statusCode).toBe(404);
  });

  it("applies the flavor's present extra specs to the next server", async () => {
    await rig.boot();
    await put(`${path}/resources:VCPU`, { "resources:VCPU": "2" });
    const [record] = await rig.store.requests([await rig.boot()]);
    expect(record?.spec.flavor?.extraSpecs).toEqual({ "resources:VCPU": "2" });
  });
});
