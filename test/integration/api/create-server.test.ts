import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../rigs/eventually.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start();
});
afterEach(() => rig.close());

const stored = async () => (await rig.store.listRequests({ projectId: null, marker: null, limit: 1000 })).length;

describe("POST /servers", () => {
  it("accepts a server: 202 with its id and links, a stored request, and a message to the schedulers", async () => {
    const answer = await rig.post("/v2.1/servers", {
      server: {
        name: "web",
        flavorRef: "1",
        imageRef: "70a599e0-31e7-49b7-b260-868f441e862b",
        metadata: { role: "front" },
        availability_zone: "nova",
      },
    });
    expect(answer.statusCode).toBe(202);
    const { server } = answer.json();
    expect(server).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      links: [
        { rel: "self", href: `http://localhost:80/v2.1/servers/${server.id}` },
        { rel: "bookmark", href: `http://localhost:80/servers/${server.id}` },
      ],
      "OS-DCF:diskConfig": "AUTO",
      security_groups: [{ name: "default" }],
      adminPass: expect.any(String),
    });
    expect(answer.headers.location).toBe(`http://localhost:80/v2.1/servers/${server.id}`);
    expect(answer.headers["x-openstack-request-id"]).toMatch(/^req-[0-9a-f-]{36}$/);
    expect(answer.headers["x-compute-request-id"]).toBe(answer.headers["x-openstack-request-id"]);
    const [record] = await rig.store.requests([server.id]);
    expect(record).toMatchObject({
      state: "accepted",
      spec: {
        name: "web",
        projectId: "default",
        imageRef: "70a599e0-31e7-49b7-b260-868f441e862b",
        metadata: { role: "front" },
        availabilityZone: "nova",
        requestId: answer.headers["x-openstack-request-id"],
        flavor: { id: "1", memoryMib: 512, extraSpecs: { "resources:VCPU": "1" } },
      },
    });
    await eventually("the schedulers were told", () => rig.toldSchedulers.includes(server.id));
  });

  it("accepts a flavor by its URL, and as a number", async () => {
    await rig.boot({ flavorRef: "http://somewhere/v2.1/flavors/1" });
    await rig.boot({ flavorRef: 1 });
    expect(await stored()).toBe(2);
  });

  it("accepts several servers of one call with numbered names and one reservation", async () => {
    const answer = await rig.post("/v2.1/servers", {
      server: { name: "web", flavorRef: "1", min_count: "2", max_count: 3, return_reservation_id: "True" },
    });
    expect(answer.statusCode).toBe(202);
    const { reservation_id: reservation } = answer.json();
    expect(reservation).toMatch(/^r-[0-9a-z]{8}$/);
    const list = await rig.get(`/v2.1/servers?reservation_id=${reservation}`);
    expect(
      list
        .json()
        .servers.map((server: { name: string }) => server.name)
        .sort(),
    ).toEqual(["web-1", "web-2", "web-3"]);
  });

  it("accepts the server although the bus is down, because the row counts", async () => {
    rig.busDown = true;
    const uuid = await rig.boot();
    expect(await rig.store.requests([uuid])).toMatchObject([{ state: "accepted" }]);
  });

  const server = { name: "web", flavorRef: "1" };
  const refusals: [title: string, body: unknown, message: RegExp, headers?: Record<string, string>][] = [
    ["no body at all", undefined, /body/],
    ["a list for a body", [], /object/],
    ["no server", {}, /'server' is a required property/],
    ["no name", { server: { flavorRef: "1" } }, /'name' is a required property/],
    ["no flavor", { server: { name: "web" } }, /'flavorRef' is a required property/],
    ["an empty name", { server: { ...server, name: "" } }, /attribute server\.name\. Value: \./],
    ["a name with a space before it", { server: { ...server, name: " web" } }, /server\.name/],
    ["a name with a NUL", { server: { ...server, name: "we\u0000b" } }, /server\.name/],
    ["a name that is too long", { server: { ...server, name: "x".repeat(256) } }, /server\.name/],
    ["a number for a name", { server: { ...server, name: 5 } }, /server\.name\. Value: 5/],
    ["an unknown field", { server: { ...server, colour: "red" } }, /'colour' was unexpected/],
    ["an unknown field beside the server", { server, colour: "red" }, /'colour' was unexpected/],
    ["an unknown flavor", { server: { ...server, flavorRef: "nope" } }, /^Flavor nope could not be found\.$/],
    ["an image that is no uuid", { server: { ...server, imageRef: "cirros" } }, /imageRef/],
    ["metadata that is no text", { server: { ...server, metadata: { a: 1 } } }, /metadata\.a/],
    ["a metadata key out of range", { server: { ...server, metadata: { "a/b": "1" } } }, /'a\/b' was unexpected/],
    ["networks to connect", { server: { ...server, networks: [{ uuid: "x" }] } }, /networks/],
    ["another security group", { server: { ...server, security_groups: [{ name: "web" }] } }, /security_groups/],
    ["user data that is no base64", { server: { ...server, user_data: "hello" } }, /user_data/],
    ["an unknown keypair", { server: { ...server, key_name: "mine" } }, /key_name/],
    ["a volume", { server: { ...server, block_device_mapping_v2: [{ boot_index: 0 }] } }, /v2\/source_type/],
    ["a host, of an old client", { server: { ...server, host: "host-1" } }, /'host' was unexpected/],
    [
      "a zone that there is not",
      { server: { ...server, availability_zone: "east" } },
      /The requested availability zone is not available/,
    ],
    ["a hint that is no uuid", { server, "os:scheduler_hints": { different_host: "x" } }, /different_host/],
    ["a config drive that is no flag", { server: { ...server, config_drive: "maybe" } }, /config_drive/],
    ["a disk of another kind", { server: { ...server, "OS-DCF:diskConfig": "OTHER" } }, /OS-DCF:diskConfig/],
    [
      "min_count over max_count",
      { server: { ...server, min_count: 3, max_count: 2 } },
      /min_count must be <= max_count/,
    ],
    ["no servers", { server: { ...server, min_count: "0" } }, /min_count/],
    ["too many servers", { server: { ...server, max_count: 101 } }, /max_count/],
    [
      "no networks, where they must be said",
      { server },
      /'networks' is a required property/,
      { "openstack-api-version": "compute 2.37" },
    ],
  ];
  it.each(refusals)("refuses %s with 400 and stores nothing", async (_title, body, message, headers) => {
    const answer = await rig.post("/v2.1/servers", body, headers);
    expect(answer.statusCode).toBe(400);
    expect(answer.json()).toEqual({ badRequest: { code: 400, message: expect.stringMatching(message) } });
    expect(await stored()).toBe(0);
    expect(rig.toldSchedulers).toEqual([]);
  });

  it("refuses a body that is not JSON, too deep, too large, or of another type", async () => {
    const post = (payload: string, type = "application/json") =>
      rig.call({ method: "POST", url: "/v2.1/servers", headers: { "content-type": type }, payload });
    expect((await post("{")).json()).toMatchObject({ badRequest: { code: 400 } });
    expect((await post(`{"a":${"[".repeat(100_000)}`)).json()).toMatchObject({
      badRequest: { message: expect.stringMatching(/deeper than 32/) },
    });
    expect((await post('{"__proto__": {"x": 1}}')).statusCode).toBe(400);
    expect((await post(`"${"x".repeat(2 << 20)}"`)).json()).toMatchObject({ overLimit: { code: 413 } });
    expect((await post("<xml/>", "application/xml")).json()).toMatchObject({ badMediaType: { code: 415 } });
    expect(await stored()).toBe(0);
  });

  it("hides flavors that are not public from non-admins", async () => {
    await rig.close();
    rig = await ApiRig.start({ auth: "noauth2" });
    const flavor = { name: "secret", id: "2", ram: 1, vcpus: 1, disk: 0, "os-flavor-access:is_public": false };
    await rig.post("/v2.1/flavors", { flavor }, { "x-auth-token": "admin" });
    const answer = await rig.post(
      "/v2.1/servers",
      { server: { ...server, flavorRef: "2" } },
      { "x-auth-token": "ann:blue" },
    );
    expect(answer.statusCode).toBe(400);
    await rig.boot({ flavorRef: "2" }, { "x-auth-token": "admin" });
  });

  it("refuses a flavor whose extra specs do not form a valid request, and names the fault", async () => {
    const specs = { "resources1:VGPU": "1", "resources2:VGPU": "1" };
    expect((await rig.post("/v2.1/flavors/1/os-extra_specs", { extra_specs: specs })).statusCode).toBe(200);
    const answer = await rig.post("/v2.1/servers", { server });
    expect(answer.json()).toMatchObject({ badRequest: { message: expect.stringMatching(/flavorRef.*group_policy/) } });
    expect(await stored()).toBe(0);
    await rig.post("/v2.1/flavors/1/os-extra_specs", { extra_specs: { group_policy: "none" } });
    await rig.boot();
  });
});
