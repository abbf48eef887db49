import { afterEach, beforeEach, expect, test } from "vitest";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2" });
});
afterEach(() => rig.close());

const OWNER = "dora:p";
const ADMIN = "admin:ops";
const as = (token: string, minor = 96) => ({
  "x-auth-token": token,
  "openstack-api-version": `compute 2.${minor}`,
});
const NEW = { name: "web", flavorRef: "1", networks: "none" };
const act = (id: string, body: object, token = OWNER, minor = 96) =>
  rig.post(`/v2.1/servers/${id}/action`, body, as(token, minor));
const shown = async (id: string) => (await rig.get(`/v2.1/servers/${id}`, as(OWNER))).json().server;
const active = async (fields: object = {}): Promise<string> => {
  const { id } = (await rig.post("/v2.1/servers", { server: { ...NEW, ...fields } }, as(OWNER))).json().server;
  const task = await rig.dispatch(id, "north", [0]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  return id;
};

test("a locked server refuses changes by its owner, and accepts them from an admin", async () => {
  const id = await active();
  expect((await act(id, { lock: { locked_reason: "do not touch" } })).statusCode).toBe(202);
  expect(await shown(id)).toMatchObject({ locked: true, locked_reason: "do not touch" });
  const refusals = [
    ...["os-stop", "pause", "shelve", "forceDelete"].map((action) => act(id, { [action]: null })),
    act(id, { reboot: { type: "SOFT" } }),
    act(id, { resize: { flavorRef: "1" } }),
    rig.delete(`/v2.1/servers/${id}`, as(OWNER)),
    rig.put(`/v2.1/servers/${id}/metadata`, { metadata: { a: "b" } }, as(OWNER)),
  ];
  for (const refused of await Promise.all(refusals))
    expect([refused.statusCode, refused.json()]).toEqual([
      409,
      { conflictingRequest: { code: 409, message: `Instance ${id} is locked` } },
    ]);
  expect((await rig.put(`/v2.1/servers/${id}`, { server: { name: "x" } }, as(OWNER))).statusCode).toBe(200);
  expect((await rig.put(`/v2.1/servers/${id}/tags/x`, undefined, as(OWNER))).statusCode).toBe(201);
  expect((await act(id, { "os-stop": null }, ADMIN)).statusCode).toBe(202);
});

test("an unlocked server may be changed again", async () => {
  const id = await active();
  await act(id, { lock: null });
  expect((await rig.delete(`/v2.1/servers/${id}`, as(OWNER))).statusCode).toBe(409);
  expect((await act(id, { unlock: null })).statusCode).toBe(202);
  expect(await shown(id)).toMatchObject({ locked: false, locked_reason: null });
  expect((await rig.delete(`/v2.1/servers/${id}`, as(OWNER))).statusCode).toBe(204);
});

test("a lock of an admin cannot be removed by the server's owner, and an admin can remove any lock", async () => {
  const id = await active();
  await act(id, { lock: { locked_reason: "mine" } });
  expect((await act(id, { lock: { locked_reason: "again" } })).statusCode).toBe(202);
  expect((await shown(id)).locked_reason).toBe("mine");
  await act(id, { lock: { locked_reason: "audit" } }, ADMIN);
  expect((await shown(id)).locked_reason).toBe("audit");
  const refused = await act(id, { unlock: null });
  expect([refused.statusCode, refused.json().forbidden.message]).toEqual([
    403,
    "Policy doesn't allow os_compute_api:os-lock-server:unlock:unlock_override to be performed.",
  ]);
  expect((await act(id, { unlock: null }, ADMIN)).statusCode).toBe(202);
  expect((await shown(id)).locked).toBe(false);
  expect((await act(id, { unlock: null })).statusCode).toBe(202);
});

test("a lock has a reason from 2.73 on, and any value before", async () => {
  const id = await active();
  expect((await act(id, { lock: { locked_reason: "x" } }, OWNER, 72)).statusCode).toBe(202);
  expect(await shown(id)).toMatchObject({ locked: true, locked_reason: null });
  for (const wrong of [{ locked_reason: "" }, { locked_reason: "x".repeat(256) }, { reason: "x" }, "x"])
    expect([wrong, (await act(id, { lock: wrong })).statusCode]).toEqual([wrong, 400]);
  expect((await act(crypto.randomUUID(), { lock: null })).statusCode).toBe(404);
  expect((await act(id, { lock: null }, "eve:q")).statusCode).toBe(404);
});

test("the items of a server's metadata are read and written one by one and together", async () => {
  const id = await active({ metadata: { role: "front" } });
  const path = `/v2.1/servers/${id}/metadata`;
  const read = async () => (await rig.get(path, as(OWNER))).json();
  expect(await read()).toEqual({ metadata: { role: "front" } });
  const merged = await rig.post(path, { metadata: { a: "1" } }, as(OWNER));
  expect([merged.statusCode, merged.json()]).toEqual([200, { metadata: { role: "front", a: "1" } }]);
  const one = await rig.put(`${path}/b%20c`, { meta: { "b c": "2" } }, as(OWNER));
  expect([one.statusCode, one.json()]).toEqual([200, { meta: { "b c": "2" } }]);
  expect((await rig.get(`${path}/b%20c`, as(OWNER))).json()).toEqual({ meta: { "b c": "2" } });
  expect((await rig.delete(`${path}/role`, as(OWNER))).statusCode).toBe(204);
  expect((await shown(id)).metadata).toEqual({ a: "1", "b c": "2" });
  expect((await rig.put(path, { metadata: { z: "9" } }, as(OWNER))).json()).toEqual({ metadata: { z: "9" } });
  const missing = await rig.get(`${path}/role`, as(OWNER));
  expect([missing.statusCode, missing.json().itemNotFound.message]).toEqual([404, "Metadata item was not found"]);
  expect((await rig.delete(`${path}/constructor`, as(OWNER))).statusCode).toBe(404);
  const mismatch = await rig.put(`${path}/x`, { meta: { y: "1" } }, as(OWNER));
  expect([mismatch.statusCode, mismatch.json().badRequest.message]).toEqual([400, "Request body and URI mismatch"]);
  for (const wrong of [{ meta: {} }, { meta: { x: "1", y: "2" } }, { meta: { x: 1 } }, {}])
    expect([wrong, (await rig.put(`${path}/x`, wrong, as(OWNER))).statusCode]).toEqual([wrong, 400]);
  expect((await rig.get(path, as("eve:q"))).statusCode).toBe(404);
});

test("metadata has at most 128 items, of two concurrent calls neither loses its items, and a server that is built keeps its own", async () => {
  const id = await active();
  const path = `/v2.1/servers/${id}/metadata`;
  const items = (count: number, name: string) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`${name}${at}`, "x"]));
  await Promise.all(["a", "b", "c", "d"].map((name) => rig.post(path, { metadata: items(32, name) }, as(OWNER))));
  expect(Object.keys((await shown(id)).metadata)).toHaveLength(128);
  const refused = await rig.post(path, { metadata: { more: "x" } }, as(OWNER));
  expect([refused.statusCode, refused.json().forbidden.message]).toEqual([
    403,
    "Maximum number of metadata items exceeds 128",
  ]);
  const { id: building } = (await rig.post("/v2.1/servers", { server: NEW }, as(OWNER))).json().server;
  const early = await rig.put(`/v2.1/servers/${building}/metadata`, { metadata: {} }, as(OWNER));
  expect([early.statusCode, early.json().conflictingRequest.message]).toEqual([
    409,
    `Cannot 'update metadata' instance ${building} while it is in vm_state building`,
  ]);
});

test("tags are read and written one by one and together, from 2.26 on", async () => {
  const id = await active({ tags: ["first"] });
  const path = `/v2.1/servers/${id}/tags`;
  const tags = async () => (await rig.get(path, as(OWNER))).json().tags;
  expect(await tags()).toEqual(["first"]);
  const added = await rig.put(`${path}/a%20b`, undefined, as(OWNER));
  expect([added.statusCode, added.headers.location, added.body]).toEqual([
    ...[201, expect.stringMatching(`/v2.1/servers/${id}/tags/a%20b$`), ""],
  ]);
  expect((await rig.put(`${path}/a%20b`, undefined, as(OWNER))).statusCode).toBe(204);
  expect((await rig.get(`${path}/a%20b`, as(OWNER))).statusCode).toBe(204);
  expect(await tags()).toEqual(["first", "a b"]);
  expect((await rig.put(path, { tags: ["x", "y", "x"] }, as(OWNER))).json()).toEqual({ tags: ["x", "y"] });
  expect((await rig.delete(`${path}/x`, as(OWNER))).statusCode).toBe(204);
  const missing = await rig.delete(`${path}/x`, as(OWNER));
  expect([missing.statusCode, missing.json().itemNotFound.message]).toEqual([404, `Instance ${id} has no tag 'x'`]);
  const unseen = await rig.get(`${path}/x`, as(OWNER));
  expect([unseen.statusCode, unseen.json().itemNotFound.message]).toEqual([404, `Server ${id} has no tag 'x'`]);
  for (const wrong of ["a,b", "x".repeat(61)]) {
    const refused = await rig.put(`${path}/${encodeURIComponent(wrong)}`, undefined, as(OWNER));
    expect([wrong, refused.statusCode]).toEqual([wrong, 400]);
  }
  expect((await rig.put(path, { tags: ["a/b"] }, as(OWNER))).statusCode).toBe(400);
  expect((await rig.delete(path, as(OWNER))).statusCode).toBe(204);
  expect(await tags()).toEqual([]);
  await rig.put(path, { tags: Array.from({ length: 50 }, (_, at) => `t${at}`) }, as(OWNER));
  const full = await rig.put(`${path}/more`, undefined, as(OWNER));
  expect([full.statusCode, full.json().badRequest.message]).toEqual([
    400,
    "The number of tags exceeded the per-server limit 50",
  ]);
  expect((await rig.get(path, as(OWNER, 25))).statusCode).toBe(404);
  expect((await rig.get(path, as("eve:q"))).statusCode).toBe(404);
  const { id: building } = (await rig.post("/v2.1/servers", { server: NEW }, as(OWNER))).json().server;
  expect((await rig.put(`/v2.1/servers/${building}/tags/x`, undefined, as(OWNER))).statusCode).toBe(409);
});
