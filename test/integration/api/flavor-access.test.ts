import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ApiRig } from "./api-rig.ts";

const as = (token: string, minor = 96) => ({ "x-auth-token": token, "openstack-api-version": `compute 2.${minor}` });
const ADMIN = as("admin:ops");
const ANN = as("ann:p1");
const BOB = as("bob:p2");

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2", flavorCacheMs: 0 });
  const flavor = { id: "x", name: "x", vcpus: 1, ram: 64, disk: 1, "os-flavor-access:is_public": false };
  await rig.post("/v2.1/flavors", { flavor }, ADMIN);
});
afterEach(() => rig.close());
const act = (action: string, tenant: string, headers = ADMIN, id = "x") =>
  rig.post(`/v2.1/flavors/${id}/action`, { [action]: { tenant } }, headers);
const ids = async (headers: Record<string, string>, query = "") =>
  (await rig.get(`/v2.1/flavors${query}`, headers)).json().flavors.map((flavor: { readonly id: string }) => flavor.id);
const boot = async (headers: Record<string, string>) =>
  (await rig.post("/v2.1/servers", { server: { name: "s", flavorRef: "x", networks: "none" } }, headers)).statusCode;

describe("flavor access", () => {
  it("lets a project see and use a flavor that is not public, until it is taken away", async () => {
    expect([await ids(ANN), await boot(ANN)]).toEqual([["1"], 400]);
    expect((await rig.get("/v2.1/flavors/x", ANN)).statusCode).toBe(404);
    const added = await act("addTenantAccess", "p1");
    expect(added.json()).toEqual({ flavor_access: [{ flavor_id: "x", tenant_id: "p1" }] });
    expect([await ids(ANN), await boot(ANN)]).toEqual([["1", "x"], 202]);
    expect((await rig.get("/v2.1/flavors/x", ANN)).statusCode).toBe(200);
    expect((await rig.get("/v2.1/flavors/x/os-extra_specs", ANN)).statusCode).toBe(200);
    expect([await ids(BOB), await boot(BOB)]).toEqual([["1"], 400]);
    expect(await ids(as("ann:p1"), "/detail")).toEqual(["1", "x"]);
    expect((await rig.get("/v2.1/flavors/x/os-flavor-access", ADMIN)).json()).toEqual(added.json());
    expect((await act("removeTenantAccess", "p1")).json()).toEqual({ flavor_access: [] });
    expect([await ids(ANN), await boot(ANN)]).toEqual([["1"], 400]);
  });

  it("refuses impossible changes in Nova's words", async () => {
    await act("addTenantAccess", "p1");
    const told = async (answer: ReturnType<typeof act>) => {
      const { statusCode, body } = await answer;
      return [statusCode, (Object.values(JSON.parse(body))[0] as { readonly message: string }).message];
    };
    expect(await told(act("addTenantAccess", "p1"))).toEqual([
      409,
      "Flavor access already exists for flavor x and project p1 combination.",
    ]);
    expect(await told(act("removeTenantAccess", "p2"))).toEqual([
      404,
      "Flavor access not found for x / p2 combination.",
    ]);
    expect(await told(act("addTenantAccess", "p1", ADMIN, "1"))).toEqual([
      409,
      "Can not add access to a public flavor.",
    ]);
    expect((await act("addTenantAccess", "p1", as("admin:ops", 6), "1")).statusCode).toBe(200);
    expect(await told(act("addTenantAccess", "p1", ADMIN, "none"))).toEqual([404, "Flavor none could not be found."]);
    expect(await told(rig.get("/v2.1/flavors/1/os-flavor-access", ADMIN))).toEqual([
      404,
      "Access list not available for public flavors.",
    ]);
    expect((await act("shareWith", "p1")).statusCode).toBe(400);
  });

  it("is for admins alone", async () => {
    for (const headers of [ANN, BOB]) {
      expect((await rig.get("/v2.1/flavors/x/os-flavor-access", headers)).statusCode).toBe(403);
      expect((await act("addTenantAccess", "p1", headers)).statusCode).toBe(403);
      expect((await act("removeTenantAccess", "p1", headers)).statusCode).toBe(403);
      expect((await rig.put("/v2.1/flavors/1", { flavor: { description: "d" } }, headers)).statusCode).toBe(403);
    }
  });
});

describe("PUT /flavors/{id}", () => {
  it("changes the description from 2.55 on", async () => {
    const put = (description: unknown, minor = 55, id = "1") =>
      rig.put(`/v2.1/flavors/${id}`, { flavor: { description } }, as("admin:ops", minor));
    expect((await put("small")).json().flavor).toMatchObject({ id: "1", description: "small" });
    expect((await rig.get("/v2.1/flavors/1", ANN)).json().flavor.description).toBe("small");
    expect((await put(null)).json().flavor.description).toBeNull();
    expect((await put("x", 54)).statusCode).toBe(404);
    expect((await put("x", 55, "none")).statusCode).toBe(404);
    expect((await put(5)).statusCode).toBe(400);
  });
});

it("lists flavors by each of Nova's sort keys", async () => {
  const flavor = { id: "0", name: "a", vcpus: 2, ram: 32, disk: 1 };
  await rig.post("/v2.1/flavors", { flavor }, ADMIN);
  const by = (query: string) => ids(ADMIN, `?is_public=None&${query}`);
  expect(await by("sort_key=created_at")).toEqual(["1", "x", "0"]);
  expect(await by("sort_key=created_at&sort_dir=desc")).toEqual(["0", "x", "1"]);
  expect(await by("sort_key=is_public")).toEqual(["x", "0", "1"]);
  for (const key of ["disabled", "updated_at", "vcpu_weight"]) expect(await by(`sort_key=${key}`)).toHaveLength(3);
  expect((await rig.get("/v2.1/flavors?sort_key=colour", ADMIN)).statusCode).toBe(400);
});
