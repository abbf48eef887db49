import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2" });
});
afterEach(() => rig.close());

const OWNER = "dora:p";
const as = (token: string, minor = 96) => ({
  "x-auth-token": token,
  "openstack-api-version": `compute 2.${minor}`,
  "x-openstack-nova-api-version": `2.${minor}`,
});
const NEW = { name: "web", flavorRef: "1" };
/** Before 2.37, networks cannot be said by a word. */
const withoutNetworks = (minor: number) => (minor < 37 ? {} : { networks: "none" });
const create = (fields: object, minor = 96) =>
  rig.post("/v2.1/servers", { server: { ...NEW, ...withoutNetworks(minor), ...fields } }, as(OWNER, minor));
const created = async (fields: object = {}, minor = 96): Promise<string> =>
  (await create(fields, minor)).json().server.id;
const shown = async (id: string, minor = 96, token = "admin:p") =>
  (await rig.get(`/v2.1/servers/${id}`, as(token, minor))).json().server;
const active = async (fields: object = {}) => {
  const id = await created(fields);
  const task = await rig.dispatch(id, "north", [0]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  return id;
};

describe("the fields of a new server", () => {
  const GIVEN = {
    description: "the front",
    tags: ["blue", "green", "blue"],
    accessIPv4: "10.0.0.1",
    accessIPv6: "2001:0DB8:0:0:0::1",
    user_data: "aGVsbG8=",
    config_drive: "yes",
    "OS-DCF:diskConfig": "MANUAL",
  };

  test("are shown as they were given, an IPv6 address in its canonical spelling, before and after it is in its cell, and go to its host", async () => {
    const id = await created(GIVEN);
    const view = {
      ...{ description: "the front", tags: ["blue", "green"], accessIPv4: "10.0.0.1", accessIPv6: "2001:db8::1" },
      ...{ config_drive: "True", "OS-DCF:diskConfig": "MANUAL", "OS-EXT-SRV-ATTR:user_data": "aGVsbG8=" },
      "OS-EXT-SRV-ATTR:launch_index": 0,
    };
    expect(await shown(id)).toMatchObject({ ...view, status: "BUILD", host_status: "" });
    const task = await rig.dispatch(id, "north", [0]);
    expect(task.server).toMatchObject({ userData: "aGVsbG8=", configDrive: true, accessIpV4: "10.0.0.1" });
    await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
    expect(await shown(id)).toMatchObject({ ...view, status: "ACTIVE", host_status: "UP", locked: false });
  });

  test("are accepted, and are shown, from the microversions on that introduced this", async () => {
    for (const [field, minor] of [
      ["description", 19],
      ["tags", 52],
    ] as const) {
      const refused = await create({ [field]: GIVEN[field] }, minor - 1);
      expect([field, refused.statusCode, refused.json().badRequest.message]).toEqual([
        ...[field, 400, `Additional properties are not allowed ('${field}' was unexpected)`],
      ]);
      expect((await create({ [field]: GIVEN[field] }, minor)).statusCode).toBe(202);
    }
    const id = await active(GIVEN);
    const keysAt = async (minor: number, token = "admin:p") => Object.keys(await shown(id, minor, token));
    for (const [key, minor] of [
      ["OS-EXT-SRV-ATTR:launch_index", 3],
      ["OS-EXT-SRV-ATTR:user_data", 3],
      ["locked", 9],
      ["host_status", 16],
      ["description", 19],
      ["tags", 26],
      ["server_groups", 71],
      ["locked_reason", 73],
    ] as const) {
      expect([key, (await keysAt(minor - 1)).includes(key), (await keysAt(minor)).includes(key)]).toEqual([
        ...[key, false, true],
      ]);
    }
    const owners = await keysAt(96, OWNER);
    for (const key of ["OS-EXT-SRV-ATTR:user_data", "host_status", "OS-EXT-SRV-ATTR:launch_index"])
      expect(owners).not.toContain(key);
  });

  test("are the same for each of several servers, which also has its position", async () => {
    await create({ ...GIVEN, min_count: 3 });
    const { servers } = (await rig.get("/v2.1/servers/detail", as("admin:p"))).json();
    const positions = servers.map((one: Record<string, unknown>) => [one.name, one["OS-EXT-SRV-ATTR:launch_index"]]);
    expect(positions.sort()).toEqual([
      ["web-1", 0],
      ["web-2", 1],
      ["web-3", 2],
    ]);
    expect(servers.map((one: { tags: string[] }) => one.tags)).toEqual(Array(3).fill(["blue", "green"]));
  });

  test("have its name as its description in microversions without descriptions", async () => {
    expect((await shown(await created({}, 18))).description).toBe("web");
    expect((await shown(await created({}, 19))).description).toBeNull();
    expect((await shown(await created({ description: "" }, 19))).description).toBe("");
  });

  test.each([
    ["a description with a line end", { description: "a\nb" }, /description/],
    ["a tag with a comma", { tags: ["a,b"] }, /tags/],
    ["a long tag", { tags: ["x".repeat(61)] }, /tags/],
    ["too many tags", { tags: Array.from({ length: 51 }, (_, at) => `t${at}`) }, /tags/],
    ["an address that is none", { accessIPv4: "10.0.0" }, /accessIPv4.*is not a 'ipv4'/],
    ["an address of the other kind", { accessIPv6: "10.0.0.1" }, /accessIPv6.*is not a 'ipv6'/],
    ["large user data", { user_data: "A".repeat(65_536) }, /user_data/],
  ])("are refused with %s", async (_title, fields, message) => {
    const refused = await create(fields);
    expect([refused.statusCode, refused.json().badRequest.message]).toEqual([400, expect.stringMatching(message)]);
  });

  test("show the group that the server is a member of, until the group is deleted", async () => {
    const group = await rig.post(
      "/v2.1/os-server-groups",
      { server_group: { name: "g", policy: "affinity" } },
      as(OWNER),
    );
    const uuid = group.json().server_group.id;
    const body = { server: { ...NEW, networks: "none" }, "os:scheduler_hints": { group: uuid } };
    const { id } = (await rig.post("/v2.1/servers", body, as(OWNER))).json().server;
    expect((await shown(id)).server_groups).toEqual([uuid]);
    expect((await shown(await created())).server_groups).toEqual([]);
    await rig.delete(`/v2.1/os-server-groups/${uuid}`, as(OWNER));
    expect((await shown(id)).server_groups).toEqual([]);
  });
});

describe("PUT /servers/{id}", () => {
  test("changes each field, also while an operation is under way, and shows it at once", async () => {
    const id = await active({ description: "before" });
    const put = (server: object, minor = 96) => rig.put(`/v2.1/servers/${id}`, { server }, as(OWNER, minor));
    expect((await rig.post(`/v2.1/servers/${id}/action`, { "os-stop": null }, as(OWNER))).statusCode).toBe(202);
    const wanted = {
      ...{ name: "db", description: "after", accessIPv4: "10.0.0.2", accessIPv6: "2001:db8::2" },
      "OS-DCF:diskConfig": "MANUAL",
    };
    const answer = await put(wanted);
    expect([answer.statusCode, answer.json().server]).toEqual([200, expect.objectContaining(wanted)]);
    expect(await shown(id)).toMatchObject(wanted);
    expect((await put({ description: null })).json().server.description).toBeNull();
    expect((await put({})).json().server).toMatchObject({ name: "db", accessIPv4: "10.0.0.2" });
    for (const [wrong, minor] of [
      [{ accessIPv4: "x" }, 96],
      [{ description: "x" }, 18],
      [{ description: "x".repeat(256) }, 96],
      [{ name: " " }, 96],
      [{ tags: [] }, 96],
    ] as const)
      expect([wrong, (await put(wrong, minor)).statusCode]).toEqual([wrong, 400]);
    expect((await rig.put(`/v2.1/servers/${id}`, { server: { name: "x" } }, as("eve:q"))).statusCode).toBe(404);
    expect((await shown(id)).name).toBe("db");
  });

  test("answers with fewer fields before 2.75", async () => {
    const id = await active();
    const keys = async (minor: number) =>
      Object.keys(
        (await rig.put(`/v2.1/servers/${id}`, { server: { name: "n" } }, as("admin:p", minor))).json().server,
      );
    const few = await keys(74);
    const all = await keys(75);
    for (const key of ["key_name", "config_drive", "OS-EXT-STS:vm_state", "host_status", "OS-EXT-SRV-ATTR:host"])
      expect([key, few.includes(key), all.includes(key)]).toEqual([key, false, true]);
    expect(few).toContain("locked_reason");
  });

  test("of two calls at once, both take effect", async () => {
    const id = await active();
    const put = (server: object) => rig.put(`/v2.1/servers/${id}`, { server }, as(OWNER));
    await Promise.all([put({ name: "a" }), put({ description: "b" }), put({ accessIPv4: "10.0.0.3" })]);
    expect(await shown(id)).toMatchObject({ name: "a", description: "b", accessIPv4: "10.0.0.3" });
  });
});

describe("trusted_image_certificates", () => {
  const CERTIFICATES = ["0b5d2c72-12cc-4ba6-a8d7-3ff5cc1d8cb8", "674736e3-f25c-405c-8362-bbf991e0ce0a"];
  const inTask = (of: "build" | "operate") =>
    rig
      .cell("north")
      .store.tasks()
      .find(({ kind }) => kind === of)?.task.server?.trustedCerts;

  test("are kept, shown, and given to the host; a rebuild keeps, changes or removes them", async () => {
    const id = await active({ trusted_image_certificates: CERTIFICATES, imageRef: randomUUID() });
    expect((await shown(id)).trusted_image_certificates).toEqual(CERTIFICATES);
    expect(inTask("build")).toEqual(CERTIFICATES);
    const rebuild = async (fields: object) => {
      const body = { rebuild: { imageRef: randomUUID(), ...fields } };
      const answer = await rig.post(`/v2.1/servers/${id}/action`, body, as(OWNER));
      expect(answer.statusCode).toBe(202);
      return answer.json().server.trusted_image_certificates;
    };
    expect(await rebuild({ trusted_image_certificates: null })).toBeNull();
    expect(inTask("operate")).toEqual([]);
  });

  test("are refused for a server that boots from a volume, in wrong forms, and before 2.63", async () => {
    await active();
    const server = { name: "web", flavorRef: "1", networks: "none", imageRef: randomUUID() };
    const create = (fields: object, minor = 96) =>
      rig.post("/v2.1/servers", { server: { ...server, ...fields } }, as(OWNER, minor));
    for (const wrong of [[], ["x", "x"], [""], "x", [1], Array.from({ length: 51 }, (_, at) => `c${at}`)])
      expect([wrong, (await create({ trusted_image_certificates: wrong })).statusCode]).toEqual([wrong, 400]);
    expect((await create({ trusted_image_certificates: ["x"] }, 62)).statusCode).toBe(400);
    const volume = { boot_index: 0, source_type: "volume", destination_type: "volume", uuid: randomUUID() };
    const booted = { imageRef: "", block_device_mapping_v2: [volume], trusted_image_certificates: ["x"] };
    expect((await create(booted)).json().badRequest.message).toBe(
      "Image certificate validation is not supported when booting from volume",
    );
  });
});

describe("rebuild", () => {
  test("changes the fields, and its answer shows them in its microversion", async () => {
    const id = await active({ description: "before", user_data: "aGVsbG8=" });
    await rig.put(`/v2.1/servers/${id}`, { server: { name: "middle", description: "middle" } }, as(OWNER));
    const imageRef = randomUUID();
    const wanted = { name: "after", description: "new", accessIPv4: "10.0.0.9", metadata: { a: "b" } };
    const answer = await rig.post(
      `/v2.1/servers/${id}/action`,
      { rebuild: { imageRef, ...wanted, user_data: "d29ybGQ=" } },
      as(OWNER),
    );
    expect([answer.statusCode, answer.json().server]).toEqual([
      202,
      expect.objectContaining({ ...wanted, user_data: "d29ybGQ=", status: "REBUILD" }),
    ]);
    expect(answer.json().server.image.id).toBe(imageRef);
    expect(await shown(id)).toMatchObject(wanted);
    const task = rig
      .cell("north")
      .store.tasks()
      .find(({ kind }) => kind === "operate")?.task;
    expect(task?.server).toMatchObject({ name: "after", userData: "d29ybGQ=", metadata: { a: "b" } });
  });

  test("refuses what its microversion does not have, and changes nothing then", async () => {
    const id = await active();
    const rebuild = (fields: object, minor: number) =>
      rig.post(`/v2.1/servers/${id}/action`, { rebuild: { imageRef: randomUUID(), ...fields } }, as(OWNER, minor));
    for (const [fields, minor] of [
      [{ description: "x" }, 18],
      [{ user_data: "aGVsbG8=" }, 56],
      [{ trusted_image_certificates: ["x", "x"] }, 63],
      [{ trusted_image_certificates: [] }, 63],
      [{ trusted_image_certificates: ["x"] }, 62],
      [{ name: "other", accessIPv4: "x" }, 96],
      [{ name: "a\u0007b" }, 96],
      [{ name: " " }, 96],
      [{ description: "a\u2028b" }, 96],
      [{ metadata: { "a\u0000b": "x" } }, 96],
      [{ metadata: { "": "x" } }, 96],
      [{ name: "other", user_data: "x" }, 96],
    ] as const)
      expect([fields, (await rebuild(fields, minor)).statusCode]).toEqual([fields, 400]);
    expect(await shown(id)).toMatchObject({ name: "web", status: "ACTIVE" });
    const few = Object.keys((await rebuild({}, 53)).json().server);
    expect([few.includes("key_name"), few.includes("config_drive"), few.includes("user_data")]).toEqual([
      ...[false, false, false],
    ]);
  });
});
