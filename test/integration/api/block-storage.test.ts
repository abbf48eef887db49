import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2", volumes: "simple", volumesPerProject: { volumes: 4, gib: 10 } });
});
afterEach(() => rig.close());

const ROOT = "/volume/v3";
const as = (who: string) => ({ "x-auth-token": who });
const call = async (method: "GET" | "POST" | "PUT" | "DELETE", path: string, body?: unknown, who = "bob:p") => {
  const type = body === undefined ? {} : { "content-type": "application/json" };
  const payload = body === undefined ? {} : { payload: JSON.stringify(body) };
  const answer = await rig.call({ method, url: ROOT + path, headers: { ...as(who), ...type }, ...payload });
  return { status: answer.statusCode, json: answer.body === "" ? null : answer.json() };
};
const create = (fields: object = {}, who = "bob:p") =>
  call("POST", "/volumes", { volume: { size: 1, ...fields } }, who);
const made = async (fields: object = {}, who = "bob:p") => {
  const { status, json } = await create(fields, who);
  expect([status, json]).toEqual([202, expect.anything()]);
  return json.volume;
};
const ids = async (path: string, who = "bob:p"): Promise<string[]> =>
  (await call("GET", path, undefined, who)).json.volumes.map(({ id }: { id: string }) => id);

test("a volume is made, shown, changed and deleted", async () => {
  const fields = {
    name: "data",
    description: "d",
    metadata: { a: "b" },
    volume_type: "__DEFAULT__",
    availability_zone: "nova",
  };
  const volume = await made({ ...fields, size: "2" });
  expect(volume).toMatchObject({
    ...{ ...fields, size: 2, status: "available", bootable: "false", attachments: [], encrypted: false },
    ...{ user_id: "bob", updated_at: null },
  });
  const path = `/volumes/${volume.id}`;
  // The answer to the creation does not say whose it is, as in Cinder.
  expect((await call("GET", path)).json.volume).toEqual({ ...volume, "os-vol-tenant-attr:tenant_id": "p" });
  expect(volume).not.toHaveProperty("os-vol-tenant-attr:tenant_id");
  const changed = await call("PUT", path, { volume: { name: "n", description: null } });
  expect(changed).toMatchObject({
    status: 200,
    json: { volume: { name: "n", description: null, metadata: { a: "b" } } },
  });
  expect(changed.json.volume.updated_at).not.toBeNull();
  expect((await call("POST", `${path}/action`, { "os-set_bootable": { bootable: true } })).status).toBe(200);
  expect((await call("GET", path)).json.volume.bootable).toBe("true");
  expect((await call("POST", `${path}/action`, { "os-extend": { new_size: 9 } })).status).toBe(400);
  expect(await call("DELETE", path)).toEqual({ status: 202, json: null });
  expect(await call("GET", path)).toMatchObject({
    ...{ status: 404, json: { itemNotFound: { message: `Volume ${volume.id} could not be found.` } } },
  });
});

test("metadata is changed as a whole and by its items", async () => {
  const path = `/volumes/${(await made({ metadata: { a: "1" } })).id}/metadata`;
  expect((await call("POST", path, { metadata: { b: "2" } })).json).toEqual({ metadata: { a: "1", b: "2" } });
  expect((await call("PUT", path, { metadata: { c: "3" } })).json).toEqual({ metadata: { c: "3" } });
  expect((await call("PUT", `${path}/d`, { meta: { d: "4" } })).json).toEqual({ meta: { d: "4" } });
  expect((await call("PUT", `${path}/d`, { meta: { e: "4" } })).status).toBe(400);
  expect((await call("GET", `${path}/d`)).json).toEqual({ meta: { d: "4" } });
  expect((await call("DELETE", `${path}/c`)).status).toBe(200);
  expect((await call("DELETE", `${path}/c`)).status).toBe(404);
  expect((await call("GET", path)).json).toEqual({ metadata: { d: "4" } });
  for (let at = 0; at < 127; at += 1) await call("PUT", `${path}/k${at}`, { meta: { [`k${at}`]: "" } });
  expect((await call("PUT", `${path}/more`, { meta: { more: "" } })).status).toBe(400);
});

test("a list has pages, filters, and the volumes of one project unless an admin asks for all", async () => {
  const mine = [await made(), await made({ name: "x" }), await made()].map(({ id }) => id);
  const foreign = (await made({}, "eve:q")).id;
  const all = await ids("/volumes/detail");
  expect(all.toSorted()).toEqual(mine.toSorted());
  expect(await ids("/volumes")).toEqual(all);
  const first = await call("GET", "/volumes?limit=2");
  expect(first.json.volumes.map(({ id }: { id: string }) => id)).toEqual(all.slice(0, 2));
  const [{ rel, href }] = first.json.volumes_links;
  expect(rel).toBe("next");
  expect(await ids(new URL(href).pathname.slice(ROOT.length) + new URL(href).search)).toEqual(all.slice(2));
  expect(await ids("/volumes?name=x")).toEqual([mine[1]]);
  expect(await ids("/volumes?status=available")).toEqual(all);
  for (const status of ["in-use", "error", "other"]) expect(await ids(`/volumes?status=${status}`)).toEqual([]);
  expect(await ids("/volumes?all_tenants=1")).toEqual(all);
  expect(await ids("/volumes?project_id=q")).toEqual(all);
  expect(await ids("/volumes?all_tenants=1", "admin:p")).toContain(foreign);
  expect(await ids("/volumes?project_id=q", "admin:p")).toEqual([foreign]);
  expect((await call("GET", `/volumes?marker=${foreign}`)).status).toBe(400);
  expect((await call("GET", `/volumes?marker=${foreign}&all_tenants=1`, undefined, "admin:p")).status).toBe(200);
});

test.each([
  ["no size", { size: undefined }, 400, "size"],
  ["a size of nothing", { size: 0 }, 400, "size"],
  ["contents of an image", { imageRef: randomUUID() }, 400, "imageRef"],
  ["contents of a volume", { source_volid: randomUUID() }, 400, "source_volid"],
  ["several servers at a time", { multiattach: true }, 400, "multiattach"],
  ["an unknown type", { volume_type: "fast" }, 404, "Volume type with name fast could not be found."],
  ["an unknown zone", { availability_zone: "moon" }, 400, "Availability zone 'moon' is invalid."],
])("a new volume with %s is refused", async (_what, fields, status, message) => {
  const refused = await create(fields);
  expect(refused.status).toBe(status);
  expect(JSON.stringify(refused.json)).toContain(message);
  expect(await ids("/volumes")).toEqual([]);
});

test("a project has no more volumes and gigabytes than its limits", async () => {
  await made({ size: 8 });
  const large = await create({ size: 3 });
  expect(large.status).toBe(413);
  expect(large.json.overLimit.message).toMatch(/Requested 3G, quota is 10G and 8G has been consumed/);
  for (let at = 0; at < 2; at += 1) await made();
  expect((await call("GET", "/limits")).json.limits.absolute).toMatchObject({
    ...{ maxTotalVolumes: 4, totalVolumesUsed: 3, maxTotalVolumeGigabytes: 10, totalGigabytesUsed: 10 },
  });
  expect((await call("GET", "/os-quota-sets/p")).json.quota_set).toMatchObject({ id: "p", volumes: 4, gigabytes: 10 });
  const { quota_set } = (await call("GET", "/os-quota-sets/p?usage=True")).json;
  expect(quota_set.volumes).toEqual({ limit: 4, in_use: 3, reserved: 0, allocated: 0 });
  expect((await call("GET", "/os-quota-sets/p/defaults")).json.quota_set).toMatchObject({ id: "p", volumes: 4 });
  for (const others of ["/os-quota-sets/q", "/os-quota-sets/q/defaults", "/os-quota-class-sets/default"])
    expect((await call("GET", others)).status).toBe(403);
  const byAdmin = await call("GET", "/os-quota-class-sets/default", undefined, "admin:p");
  expect(byAdmin.json.quota_class_set).toMatchObject({ id: "default", volumes: 4, gigabytes: 10 });
});

test("clients find the version, the type and the zone of volumes, and empty lists of what does not exist", async () => {
  for (const [path, status] of [
    ["/volume", 300],
    ["/volume/", 300],
    [ROOT, 200],
    [`${ROOT}/`, 200],
  ] as const) {
    const answer = await rig.get(path);
    expect([path, answer.statusCode]).toEqual([path, status]);
    expect(answer.json().versions).toMatchObject([{ id: "v3.0", status: "CURRENT", version: "3.0" }]);
  }
  const [type] = (await call("GET", "/types")).json.volume_types;
  expect((await call("GET", "/types/default")).json).toEqual({ volume_type: type });
  expect((await call("GET", `/types/${type.id}`)).json).toEqual({ volume_type: type });
  expect((await call("GET", `/types/${randomUUID()}`)).status).toBe(404);
  expect((await call("GET", "/os-availability-zone")).json.availabilityZoneInfo).toMatchObject([{ zoneName: "nova" }]);
  for (const path of ["/snapshots", "/snapshots/detail", "/backups"])
    expect(Object.values((await call("GET", path)).json)).toEqual([[]]);
  expect((await rig.get(`${ROOT}/volumes`)).statusCode).toBe(401);
});

test("an api without volumes has no Block Storage API", async () => {
  const without = await ApiRig.start();
  expect((await without.get(`${ROOT}/volumes`)).statusCode).toBe(404);
  await without.close();
});
