import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ALL_PATHS } from "../../rigs/api-paths.ts";
import { ApiRig } from "./api-rig.ts";

const PROJECT = "0123456789abcdef0123456789abcdef";
const OTHER = "fedcba9876543210fedcba9876543210";
const OWNER = { "x-auth-token": `alice:${PROJECT}` };
const json = { "content-type": "application/json" };

let rig: ApiRig;
beforeAll(async () => {
  rig = await ApiRig.start({ auth: "noauth2", ...ALL_PATHS });
});
afterAll(() => rig.close());

describe("a URL with the caller's project", () => {
  it("is served as the one without it, and its links have the project too", async () => {
    const body = { server: { name: "web", flavorRef: "1" } };
    const created = await rig.post(`/v2.1/${PROJECT}/servers`, body, OWNER);
    expect(created.statusCode, created.body).toBe(202);
    const { id, links } = created.json().server;
    expect(created.headers.location).toBe(`http://localhost:80/v2.1/${PROJECT}/servers/${id}`);
    expect(links).toEqual([
      { rel: "self", href: `http://localhost:80/v2.1/${PROJECT}/servers/${id}` },
      { rel: "bookmark", href: `http://localhost:80/${PROJECT}/servers/${id}` },
    ]);
    for (const prefix of ["/v2.1", "/compute/v2.1", "/v2", "/compute/v2"]) {
      const shown = await rig.get(`${prefix}/${PROJECT}/servers/${id}/`, OWNER);
      expect(shown.statusCode, shown.body).toBe(200);
      expect(shown.json().server.links[0].href).toBe(`http://localhost:80${prefix}/${PROJECT}/servers/${id}`);
    }
    const page = await rig.get(`/v2.1/${PROJECT}/servers/detail?limit=1&name=we%2Fb`, OWNER);
    expect(page.statusCode).toBe(200);
  });

  it("is refused with Nova's message for every caller if it belongs to another project", async () => {
    for (const token of [`alice:${PROJECT}`, `admin:${PROJECT}`]) {
      const answer = await rig.get(`/v2.1/${OTHER}/servers`, { "x-auth-token": token });
      expect(answer.statusCode).toBe(400);
      expect(answer.json().badRequest.message).toBe(
        `Malformed request URL: URL's project_id '${OTHER}' doesn't match Context's project_id '${PROJECT}'`,
      );
    }
    expect((await rig.get("/v2.1/no-project/servers", OWNER)).statusCode).toBe(404);
    expect((await rig.get(`/v2.1/${OTHER}/servers`)).statusCode).toBe(401);
  });

  it("is not found when nothing is served behind the project, nor is a wrong method", async () => {
    expect((await rig.get(`/v2.1/${PROJECT}/nonsense`, OWNER)).statusCode).toBe(404);
    expect((await rig.get(`/v2.1/${PROJECT}/${PROJECT}/servers`, OWNER)).statusCode).toBe(404);
    expect((await rig.call({ method: "PATCH", url: `/v2.1/${PROJECT}/servers`, headers: OWNER })).statusCode).toBe(404);
  });

  it("alone describes the version without authentication, as clients ask for the URL of their catalog", async () => {
    for (const url of [`/v2.1/${PROJECT}`, `/v2.1/${PROJECT}/`, "/v2.1"]) {
      const answer = await rig.get(url);
      expect(answer.statusCode, url).toBe(200);
      expect(answer.json().version).toMatchObject({ id: "v2.1", status: "CURRENT", min_version: "2.1" });
    }
  });
});

describe("os-volumes_boot, with which gophercloud creates servers that boot from volumes", () => {
  it("is another name of the servers, whose answers name them", async () => {
    const body = { server: { name: "boot", flavorRef: "1" } };
    for (const base of ["/v2.1", `/v2.1/${PROJECT}`, "/compute/v2.1", `/v2/${PROJECT}`]) {
      const created = await rig.post(`${base}/os-volumes_boot`, body, OWNER);
      expect(created.statusCode, created.body).toBe(202);
      const { id, links } = created.json().server;
      const self = `http://localhost:80${base}/servers/${id}`;
      expect([created.headers.location, links[0].href]).toEqual([self, self]);
      const shown = (await rig.get(`${base}/os-volumes_boot/${id}`, OWNER)).json();
      expect(shown).toEqual((await rig.get(`${base}/servers/${id}`, OWNER)).json());
      for (const list of ["", "/detail"]) {
        const page = (await rig.get(`${base}/os-volumes_boot${list}?limit=1`, OWNER)).json();
        expect(page).toEqual((await rig.get(`${base}/servers${list}?limit=1`, OWNER)).json());
        expect(page.servers_links[0].href).toContain(`${base}/servers${list}?`);
      }
      const locked = await rig.post(`${base}/os-volumes_boot/${id}/action`, { lock: null }, OWNER);
      expect([locked.statusCode, locked.body]).toEqual([202, ""]);
      await rig.post(`${base}/os-volumes_boot/${id}/action`, { unlock: null }, OWNER);
      expect((await rig.delete(`${base}/os-volumes_boot/${id}`, OWNER)).statusCode).toBe(204);
    }
  });

  it("ends after 2.102, has seven routes, and is refused as the servers are", async () => {
    const at = (minor: number) => ({ ...OWNER, "openstack-api-version": `compute 2.${minor}` });
    expect((await rig.get("/v2.1/os-volumes_boot", at(102))).statusCode).toBe(200);
    for (const path of ["os-volumes_boot", "os-volumes_boot/detail"])
      expect((await rig.get(`/v2.1/${path}`, at(103))).statusCode).toBe(404);
    expect((await rig.get("/v2.1/servers", at(103))).statusCode).toBe(200);
    for (const path of ["os-volumes_boot/1/ips", "os-volumes_boots", "os-volumes_boot/1/action/x"])
      expect((await rig.get(`/v2.1/${path}`, OWNER)).statusCode).toBe(404);
    expect((await rig.get("/v2.1/os-volumes_boot")).statusCode).toBe(401);
    expect((await rig.get(`/v2.1/${OTHER}/os-volumes_boot`, OWNER)).statusCode).toBe(400);
    expect((await rig.call({ method: "PATCH", url: "/v2.1/os-volumes_boot", headers: OWNER })).statusCode).toBe(404);
  });
});

describe("the versions", () => {
  it("are listed with the legacy one first, and described one by one", async () => {
    const { versions } = (await rig.get("/")).json();
    expect(versions).toMatchObject([
      { id: "v2.0", version: "", min_version: "", links: [{ rel: "self", href: "http://localhost:80/v2/" }] },
      { id: "v2.1", min_version: "2.1", links: [{ rel: "self", href: "http://localhost:80/v2.1/" }] },
    ]);
    expect((await rig.get("/v2/")).json().version).toMatchObject({
      id: "v2.0",
      "media-types": [{ base: "application/json", type: "application/vnd.openstack.compute+json;version=2" }],
    });
    expect((await rig.get("/v2.1/versions/v2.1", OWNER)).json().version.id).toBe("v2.1");
    expect((await rig.get("/v2.1/versions/v9", OWNER)).statusCode).toBe(404);
  });

  it("serve every microversion at /v2.1 and none at /v2", async () => {
    const asked = { ...OWNER, ...json, "openstack-api-version": "compute 2.61" };
    const current = await rig.get("/v2.1/flavors/1", asked);
    expect(current.headers["openstack-api-version"]).toBe("compute 2.61");
    expect(current.json().flavor).toHaveProperty("extra_specs");
    const legacy = await rig.get("/v2/flavors/1", asked);
    expect(legacy.statusCode).toBe(200);
    expect(legacy.headers).not.toHaveProperty("openstack-api-version");
    expect(legacy.json().flavor).not.toHaveProperty("extra_specs");
  });
});

describe("the extensions", () => {
  it("are those that are served, by alias", async () => {
    const { extensions } = (await rig.get("/v2.1/extensions", OWNER)).json();
    const aliases = extensions.map(({ alias }: { alias: string }) => alias);
    expect(aliases).toEqual(aliases.toSorted());
    expect(aliases).toContain("os-keypairs");
    expect(aliases).toContain("os-volumes");
    expect(aliases).toContain("os-assisted-volume-snapshots");
    const one = await rig.get("/v2.1/extensions/os-keypairs", OWNER);
    expect(one.json().extension).toMatchObject({ alias: "os-keypairs", name: "Keypairs", links: [] });
    expect((await rig.get("/v2.1/extensions/os-cells", OWNER)).statusCode).toBe(404);
    expect((await rig.get("/v2.1/extensions")).statusCode).toBe(401);
  });
});
