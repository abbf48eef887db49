import { afterEach, beforeEach, expect, test } from "vitest";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2" });
});
afterEach(() => rig.close());

const OWNER = "dora:p";
const ADMIN = "admin:p";
const SHARE = "e8debdc0-447a-4376-a10a-4cd9122d7986";
const as = (minor: number, token = OWNER) => ({
  "x-auth-token": token,
  "openstack-api-version": `compute 2.${minor}`,
});
const create = async (fields: object = {}, rest: object = {}): Promise<string> => {
  const server = { name: "web", flavorRef: "1", networks: "none", ...fields };
  return (await rig.post("/v2.1/servers", { server, ...rest }, as(90))).json().server.id;
};
const active = async (): Promise<string> => {
  const id = await create();
  const task = await rig.dispatch(id, "north", [0]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  return id;
};
const shown = async (path: string, minor: number) => (await rig.get(`/v2.1${path}`, as(minor))).json();
const unexpected = (name: string) => ({
  badRequest: { code: 400, message: `Additional properties are not allowed ('${name}' was unexpected)` },
});

test("servers show the properties of their image that Nova has, from 2.98 on, and no others", async () => {
  const id = "70a599e0-31e7-49b7-b260-868f441e862b";
  const made = await rig.post(
    "/image/v2/images",
    {
      id,
      name: "i",
      disk_format: "raw",
      container_format: "bare",
      architecture: "x86_64",
      hw_disk_bus: "virtio",
      owner_note: "x",
    },
    as(90, ADMIN),
  );
  expect(made.statusCode).toBe(201);
  const visible = await rig.post(
    "/v2.1/servers",
    { server: { name: "w", flavorRef: "1", imageRef: id, networks: "none" } },
    as(90, ADMIN),
  );
  const uuid = visible.json().server.id;
  const imageAt = async (minor: number) =>
    (await rig.get(`/v2.1/servers/${uuid}`, as(minor, ADMIN))).json().server.image;
  expect(Object.keys(await imageAt(97))).toEqual(["id", "links"]);
  expect((await imageAt(98)).properties).toEqual({ architecture: "x86_64", hw_disk_bus: "virtio" });
  const listed = (await rig.get("/v2.1/servers/detail", as(98, ADMIN))).json().servers[0];
  expect(listed.image.properties).toEqual({ architecture: "x86_64", hw_disk_bus: "virtio" });
});

test("servers show their scheduler hints as lists, from 2.100 on", async () => {
  const id = await create({}, { "os:scheduler_hints": { colour: "red", both: ["a", "b"] } });
  expect((await shown(`/servers/${id}`, 99)).server).not.toHaveProperty("scheduler_hints");
  const hints = { colour: ["red"], both: ["a", "b"] };
  expect((await shown(`/servers/${id}`, 100)).server.scheduler_hints).toEqual(hints);
  expect((await shown("/servers/detail", 100)).servers[0].scheduler_hints).toEqual(hints);
  const renamed = await rig.call({
    ...{ method: "PUT", url: `/v2.1/servers/${id}`, payload: JSON.stringify({ server: { name: "n" } }) },
    headers: { ...as(100), "content-type": "application/json" },
  });
  expect(renamed.json().server.scheduler_hints).toEqual(hints);
  const plain = await create();
  expect((await shown(`/servers/${plain}`, 100)).server.scheduler_hints).toEqual({});
});

test("a server has no file shares, and refuses one as a host without virtiofs does", async () => {
  const id = await active();
  expect(await shown(`/servers/${id}/shares`, 97)).toEqual({ shares: [] });
  expect(await shown(`/servers/${id}/shares?a=1`, 97)).toEqual(unexpected("a"));
  expect((await rig.get(`/v2.1/servers/${id}/shares`, as(97, "eve:q"))).statusCode).toBe(404);
  const attach = () => rig.post(`/v2.1/servers/${id}/shares`, { share: { share_id: SHARE } }, as(97));
  const detach = () => rig.delete(`/v2.1/servers/${id}/shares/${SHARE}`, as(97));
  const running = (action: string) => ({
    conflictingRequest: { code: 409, message: `Cannot '${action}' instance ${id} while it is in vm_state active` },
  });
  expect((await attach()).json()).toEqual(running("create share"));
  expect((await detach()).json()).toEqual(running("delete share"));
  const missing = { itemNotFound: { code: 404, message: `Share ${SHARE} could not be found.` } };
  expect(await shown(`/servers/${id}/shares/${SHARE}`, 97)).toEqual(missing);
});

test("from 2.102 on flavors have no network factor, and are listed by a part of their name", async () => {
  const flavor = { name: "gpu.big", id: "g", ram: 1, vcpus: 1, disk: 0 };
  const make = (fields: object, minor: number) =>
    rig.post("/v2.1/flavors", { flavor: { ...flavor, ...fields } }, as(minor, ADMIN));
  expect((await make({ rxtx_factor: 2 }, 102)).json()).toMatchObject({
    badRequest: { message: expect.stringContaining("('rxtx_factor' was unexpected)") },
  });
  const made = (await make({}, 102)).json().flavor;
  expect(made).not.toHaveProperty("rxtx_factor");
  expect(made).not.toHaveProperty("OS-FLV-DISABLED:disabled");
  expect((await shown("/flavors/g", 101)).flavor).toMatchObject({ rxtx_factor: 1, "OS-FLV-DISABLED:disabled": false });
  const named = async (name: string, minor: number) => shown(`/flavors?name=${encodeURIComponent(name)}`, minor);
  const ids = ({ flavors }: { flavors: { id: string }[] }) => flavors.map(({ id }) => id);
  expect(ids(await named("^gpu", 102))).toEqual(["g"]);
  expect(ids(await named("g.*big$", 102))).toEqual(["g"]);
  expect(ids(await named("^big", 102))).toEqual([]);
  expect(await named("gpu", 101)).toEqual(unexpected("name"));
  // Before 2.75 unknown parameters are ignored.
  expect(ids(await named("gpu", 74))).toEqual(["1", "g"]);
  expect(JSON.stringify(await shown("/flavors?sort_key=rxtx_factor", 102))).toContain("sort_key");
  expect(ids(await shown("/flavors?sort_key=rxtx_factor", 101))).toHaveLength(2);
});

test("from 2.102 on every route refuses query parameters that it does not know", async () => {
  const id = await create();
  for (const path of [`/servers/${id}`, "/flavors/1", "/os-availability-zone", "/extensions", `/servers/${id}/ips`]) {
    expect([path, (await rig.get(`/v2.1${path}?odd=1`, as(101))).statusCode]).toEqual([path, 200]);
    expect([path, await shown(`${path}?odd=1`, 102)]).toEqual([path, unexpected("odd")]);
  }
  const lock = () => rig.post(`/v2.1/servers/${id}/action?odd=1`, { lock: null }, as(102));
  expect((await lock()).json()).toEqual(unexpected("odd"));
  expect((await shown(`/servers/${id}`, 100)).server.locked).toBe(false);
});

test("the type spice-direct is known from 2.99 on, and unavailable", async () => {
  const id = await active();
  const open = async (minor: number, type = "spice-direct") => {
    const body = { remote_console: { protocol: "spice", type } };
    return (await rig.post(`/v2.1/servers/${id}/remote-consoles`, body, as(minor))).json().badRequest.message;
  };
  expect(await open(98)).toContain("'spice-direct' is not one of ['novnc'");
  expect(await open(99)).toBe("Unavailable console type spice-direct.");
  expect(await shown("/os-console-auth-tokens/t?a=1", 98)).toMatchObject({ forbidden: { code: 403 } });
  const asAdmin = async (minor: number) =>
    (await rig.get("/v2.1/os-console-auth-tokens/t?a=1", as(minor, ADMIN))).json();
  expect(await asAdmin(98)).toMatchObject({ itemNotFound: { code: 404 } });
  expect(await asAdmin(99)).toEqual(unexpected("a"));
});

test("from 2.75 on a query is refused for its parameters before the caller is refused for the policy, as in Nova", async () => {
  const asked = async (minor: number) => shown("/os-services?odd=1", minor);
  expect(await asked(74)).toMatchObject({ forbidden: { code: 403 } });
  expect(await asked(75)).toEqual(unexpected("odd"));
});
