import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DEFAULT_API_SETTINGS } from "../../../services/api/settings.ts";
import { hostName, providerOf } from "../../contract/cell-fixtures.ts";
import { ALL_PATHS } from "../../rigs/api-paths.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start();
});
afterEach(() => rig.close());

describe("versions", () => {
  it("lists the API's versions without authentication", async () => {
    await rig.close();
    rig = await ApiRig.start({ auth: "noauth2", ...ALL_PATHS });
    const root = await rig.get("/");
    expect(root.json().versions).toMatchObject([
      { id: "v2.0", version: "" },
      {
        id: "v2.1",
        status: "CURRENT",
        min_version: "2.1",
        version: "2.104",
        links: [{ rel: "self", href: "http://localhost:80/v2.1/" }],
      },
    ]);
    for (const [url, href] of [
      ["/v2.1/", "http://localhost:80/v2.1/"],
      ["/v2.1", "http://localhost:80/v2.1/"],
      ["/compute/v2.1/", "http://localhost:80/compute/v2.1/"],
    ]) {
      const { version } = (await rig.get(url!)).json();
      expect(version).toMatchObject({
        id: "v2.1",
        links: [
          { rel: "self", href },
          { rel: "describedby", type: "text/html", href: "http://docs.openstack.org/" },
        ],
        "media-types": [{ base: "application/json" }],
      });
    }
  });

  it.each([
    [{}, "2.1"],
    [{ "openstack-api-version": "compute 2.61" }, "2.61"],
    [{ "openstack-api-version": "volume 3.1, compute 2.90" }, "2.90"],
    [{ "openstack-api-version": "volume 3.1" }, "2.1"],
    [{ "openstack-api-version": "compute latest" }, "2.104"],
    [{ "x-openstack-nova-api-version": "2.53" }, "2.53"],
    [{ "openstack-api-version": "compute 2.61", "x-openstack-nova-api-version": "2.53" }, "2.61"],
  ])("answers %j in microversion %s", async (headers, version) => {
    const answer = await rig.get("/v2.1/servers", headers as Record<string, string>);
    expect(answer.statusCode).toBe(200);
    expect(answer.headers["openstack-api-version"]).toBe(`compute ${version}`);
    expect(answer.headers["x-openstack-nova-api-version"]).toBe(version);
    expect(answer.headers.vary).toBe("OpenStack-API-Version, X-OpenStack-Nova-API-Version");
  });

  it.each([
    ["compute 2.105", 406],
    ["compute 2.0", 406],
    ["compute 3.1", 406],
    ["compute 2", 400],
    ["compute 2.01", 400],
    ["compute x", 400],
  ])("refuses %s with %i", async (version, status) => {
    const answer = await rig.get("/v2.1/servers", { "openstack-api-version": version });
    expect(answer.statusCode).toBe(status);
    expect(Object.values(answer.json())[0]).toMatchObject({ code: status });
  });
});

describe("every answer", () => {
  it("has its own request id, even if it reports an error", async () => {
    const ids = new Set<unknown>();
    for (const url of ["/v2.1/servers", "/v2.1/servers/nope", "/nowhere", "/v2.1/servers?limit=x", "/v2.1/%zz"]) {
      const answer = await rig.get(url);
      expect(answer.headers["x-openstack-request-id"]).toMatch(/^req-[0-9a-f-]{36}$/);
      ids.add(answer.headers["x-openstack-request-id"]);
    }
    expect(ids.size).toBe(5);
  });

  it("is 404 for an unknown path, and for an unknown verb of a known one 404 in the Compute API, as in Nova, and 405 elsewhere", async () => {
    for (const [method, url] of [
      ["GET", "/v2.1/nowhere"],
      ["PATCH", "/v2.1/servers"],
      ["POST", "/compute/v2.1/servers/nope"],
    ] as const) {
      const unknown = await rig.call({ method, url });
      expect([unknown.statusCode, unknown.json()]).toMatchObject([404, { itemNotFound: { code: 404 } }]);
    }
    const answer = await rig.call({ method: "PATCH", url: "/image/v2/images" });
    expect(answer.json()).toMatchObject({ badMethod: { code: 405 } });
    expect(answer.headers.allow).toContain("POST");
  });

  it("starts its links with the public URL, where one is set", async () => {
    await rig.close();
    const http = {
      listen: { host: "127.0.0.1", port: 0 },
      publicUrl: "https://cloud.example",
      bodyBytesMax: 1000,
      computeBodyBytesMax: 1000,
      jsonDepthMax: 5,
      requestTimeoutMs: 5000,
      keepAliveMs: 1000,
      computePrefixes: ["/v2.1"],
      metrics: true,
      headRoutes: true,
    };
    rig = await ApiRig.start({ http });
    const { server } = (await rig.post("/v2.1/servers", { server: { name: "web", flavorRef: "1" } })).json();
    expect(server.links[0].href).toBe(`https://cloud.example/v2.1/servers/${server.id}`);
  });
});

describe("probes", () => {
  it("serves health, readiness and metrics without a token, on the bound port", async () => {
    await rig.close();
    rig = await ApiRig.start({ auth: "noauth2" });
    const { host, port } = rig.api.address;
    expect((await fetch(`http://${host}:${port}/healthz`)).status).toBe(200);
    expect((await fetch(`http://${host}:${port}/readyz`)).status).toBe(200);
    await rig.get("/v2.1/servers", { "x-auth-token": "ann:blue" });
    const metrics = await (await fetch(`http://${host}:${port}/metrics`)).text();
    expect(metrics).toContain(
      'berth_api_request_seconds_count{method="GET",route="/v2.1/servers",status="200",service="api"} 1',
    );
  });

  it("serves no metrics where they have an address of their own", async () => {
    await rig.close();
    rig = await ApiRig.start({ http: { ...DEFAULT_API_SETTINGS.http, metrics: false } });
    expect((await rig.get("/metrics")).statusCode).toBe(404);
    expect((await rig.get("/healthz")).statusCode).toBe(200);
  });

  it("reports not ready once it is closing", async () => {
    await rig.api.close();
    await rig.api.close();
    await expect(fetch(`http://127.0.0.1:1/readyz`)).rejects.toThrow();
  });
});

describe("/os-hypervisors", () => {
  it("shows the hosts of all cells with their resources and usage", async () => {
    await rig.bootActive("north", 0);
    await rig.cell("south").store.expireAgents(-1);
    const { hypervisors } = (await rig.get("/v2.1/os-hypervisors/detail")).json();
    expect(hypervisors).toHaveLength(6);
    expect(hypervisors[0]).toMatchObject({
      id: expect.any(Number),
      hypervisor_hostname: hostName(0),
      state: "up",
      status: "enabled",
      vcpus: 8,
      vcpus_used: 1,
      memory_mb: 0,
      local_gb: 0,
      running_vms: 1,
      service: { host: hostName(0) },
    });
    expect(hypervisors[3]).toMatchObject({
      hypervisor_hostname: hostName(3),
      state: "down",
      vcpus_used: 0,
      running_vms: 0,
    });
    const { hypervisor_statistics: sums } = (await rig.get("/v2.1/os-hypervisors/statistics")).json();
    expect(sums).toMatchObject({ count: 6, vcpus: 48, vcpus_used: 1, running_vms: 1 });
  });

  it("identifies hosts by their provider's UUID from 2.53 on, in pages, and omits usage from 2.88 on", async () => {
    const v253 = { "openstack-api-version": "compute 2.53" };
    const latest = { "openstack-api-version": "compute latest" };
    const page = (await rig.get("/v2.1/os-hypervisors?limit=4", v253)).json();
    expect(page.hypervisors[0]).toEqual({
      id: providerOf(0),
      hypervisor_hostname: hostName(0),
      state: "up",
      status: "enabled",
    });
    const next = (await rig.get(page.hypervisors_links[0].href.replace(/^http:\/\/[^/]+/, ""), v253)).json();
    expect(next.hypervisors).toHaveLength(2);
    const one = (await rig.get(`/v2.1/os-hypervisors/${providerOf(2)}`, latest)).json().hypervisor;
    expect(one).toMatchObject({ id: providerOf(2), uptime: null });
    expect(one).not.toHaveProperty("vcpus");
    expect((await rig.get("/v2.1/os-hypervisors/nope", latest)).statusCode).toBe(400);
    expect((await rig.get(`/v2.1/os-hypervisors/${crypto.randomUUID()}`, latest)).statusCode).toBe(404);
    expect((await rig.get("/v2.1/os-hypervisors?hypervisor_hostname_pattern=nope", v253)).statusCode).toBe(404);
  });

  it("leaves out a dead cell's hosts and still answers", async () => {
    rig.cell("north").dead = true;
    expect((await rig.get("/v2.1/os-hypervisors")).json().hypervisors).toHaveLength(3);
    expect((await rig.get("/v2.1/os-services?binary=nova-compute")).json().services).toMatchObject([
      { binary: "nova-compute", host: hostName(3), state: "up", status: "enabled" },
      {},
      {},
    ]);
  });

  it("is for admins only", async () => {
    await rig.close();
    rig = await ApiRig.start({ auth: "noauth2" });
    for (const url of [
      "/v2.1/os-hypervisors",
      "/v2.1/os-hypervisors/detail",
      "/v2.1/os-hypervisors/1",
      "/v2.1/os-services",
    ]) {
      expect((await rig.get(url, { "x-auth-token": "ann:blue" })).statusCode).toBe(403);
    }
  });
});
