import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { answerInterfaces } from "../../rigs/answer-interfaces.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2" });
});
afterEach(() => rig.close());

const OWNER = "dora:p";
const ADMIN = "admin:ops";
const as = (token: string, minor = 96) => ({ "x-auth-token": token, "openstack-api-version": `compute 2.${minor}` });
const NEW = { name: "web", flavorRef: "1", networks: "none" };
const act = async (id: string, body: object, token = OWNER) => {
  const answer = await rig.post(`/v2.1/servers/${id}/action`, body, as(token));
  expect([202, 204], answer.body).toContain(answer.statusCode);
  return answer.headers["x-openstack-request-id"];
};
const actions = async (id: string, query = "", minor = 96, token = OWNER) =>
  (await rig.get(`/v2.1/servers/${id}/os-instance-actions${query}`, as(token, minor))).json();
const active = async (): Promise<string> => {
  const { id } = (await rig.post("/v2.1/servers", { server: NEW }, as(OWNER))).json().server;
  const task = await rig.dispatch(id, "north", [0]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  return id;
};
interface Shown {
  readonly action: string;
  readonly request_id: string;
  readonly updated_at: string;
}

test("operations are among the actions of a server, with their callers, request ids and events", async () => {
  const id = await active();
  const requestId = await act(id, { "os-stop": null }, ADMIN);
  const [stop, create] = (await actions(id)).instanceActions;
  expect(stop).toMatchObject({
    ...{ action: "stop", request_id: requestId, instance_uuid: id, user_id: "admin", project_id: "ops", message: null },
  });
  expect(create).toMatchObject({ action: "create", user_id: "dora", project_id: "p" });
  const show = async (token: string, minor: number) =>
    (await rig.get(`/v2.1/servers/${id}/os-instance-actions/${requestId}`, as(token, minor))).json().instanceAction;
  const [event] = (await show(ADMIN, 84)).events;
  expect(event).toMatchObject({ event: "compute_stop_instance", host: "host-0", result: null, finish_time: null });
  expect(event).toHaveProperty("details");
  expect(await show(OWNER, 50)).not.toHaveProperty("events");
  const [owners] = (await show(OWNER, 84)).events;
  for (const hidden of ["details", "traceback", "host"]) expect(owners).not.toHaveProperty(hidden);
});

test("changes that need no operation are among the actions, too", async () => {
  await answerInterfaces(rig.cell("north").bus, "north");
  const id = await active();
  const port = await rig.post("/network/v2.0/ports", { port: { network_id: randomUUID() } }, as(OWNER));
  const portId = port.json().port.id;
  await act(id, { lock: null });
  await act(id, { lock: null });
  await act(id, { unlock: null });
  await rig.post(`/v2.1/servers/${id}/os-interface`, { interfaceAttachment: { port_id: portId } }, as(OWNER));
  await rig.delete(`/v2.1/servers/${id}/os-interface/${portId}`, as(OWNER));
  await act(id, { "os-resetState": { state: "error" } }, ADMIN);
  const listed = (await actions(id)).instanceActions.map(({ action }: Shown) => action);
  expect(listed.toSorted()).toEqual(
    ["resetState", "detach_interface", "attach_interface", "unlock", "lock", "create"].toSorted(),
  );
  for (let times = 0; times < 15; times += 1) {
    await act(id, { lock: null });
    await act(id, { unlock: null });
  }
  expect((await actions(id)).instanceActions).toHaveLength(21);
});

test("a page of actions begins after its marker and has a link to the next, from 2.58 on", async () => {
  const id = await active();
  for (const action of ["lock", "unlock", "lock"]) await act(id, { [action]: null });
  const all: Shown[] = (await actions(id)).instanceActions;
  expect(all).toHaveLength(4);
  const first = await actions(id, "?limit=3");
  expect(first.instanceActions).toEqual(all.slice(0, 3));
  const next = new URL(first.links[0].href);
  expect([next.searchParams.get("marker"), next.searchParams.get("limit")]).toEqual([all[2]?.request_id, "3"]);
  const second = await actions(id, next.search);
  expect(second).toEqual({ instanceActions: all.slice(3) });
  expect((await actions(id, `?changes-since=${all[0]?.updated_at}Z`)).instanceActions.length).toBeGreaterThan(0);
  expect((await actions(id, "?changes-since=2100-01-01T00:00:00Z")).instanceActions).toEqual([]);
  expect((await actions(id, "?changes-before=2000-01-01T00:00:00Z")).instanceActions).toEqual([]);
  expect((await actions(id, "?limit=1", 57)).instanceActions).toHaveLength(4);
  for (const [query, minor, message] of [
    ["?marker=req-x", 96, "Marker req-x could not be found."],
    [
      "?changes-before=2000-01-01T00:00:00Z",
      65,
      "Additional properties are not allowed ('changes-before' was unexpected)",
    ],
    ["?limit=-1", 58, /limit/],
    ["?limit=1&limit=2", 58, /limit/],
    [
      "?changes-since=2001-01-01T00:00:00Z&changes-before=2000-01-01T00:00:00Z",
      66,
      "The value of changes-since must be less than or equal to changes-before.",
    ],
  ] as const) {
    const { badRequest } = await actions(id, query, minor);
    expect([query, badRequest?.message]).toEqual([
      query,
      typeof message === "string" ? message : expect.stringMatching(message),
    ]);
  }
});

test("a server has the public key that its creator names, and keeps it", async () => {
  const keypair = { name: "k1", type: "ssh", public_key: PUBLIC_KEY };
  const imported = await rig.post("/v2.1/os-keypairs", { keypair }, as(OWNER));
  expect(imported.statusCode, imported.body).toBeLessThan(300);
  const create = (key: string, token = OWNER) =>
    rig.post("/v2.1/servers", { server: { ...NEW, key_name: key } }, as(token));
  const { id } = (await create("k1")).json().server;
  await rig.delete("/v2.1/os-keypairs/k1", as(OWNER));
  expect((await rig.get(`/v2.1/servers/${id}`, as(OWNER))).json().server.key_name).toBe("k1");
  const [record] = await rig.store.requests([id]);
  expect(record?.spec.publicKey).toBe(PUBLIC_KEY);
  for (const [key, token] of [
    ["k1", OWNER],
    ["other", "eve:p"],
  ] as const) {
    const refused = await create(key, token);
    expect([refused.statusCode, refused.json().badRequest.message]).toEqual([400, "Invalid key_name provided."]);
  }
});

const PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl dora@example.org";
