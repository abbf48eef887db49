import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../../rigs/eventually.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start();
});
afterEach(() => rig.close());

const HOSTNAME = "OS-EXT-SRV-ATTR:hostname";
const at = (minor: number) => ({ "openstack-api-version": `compute 2.${minor}` });
const create = (fields: object, minor: number) =>
  rig.post("/v2.1/servers", { server: { name: "My web.1", flavorRef: "1", networks: "none", ...fields } }, at(minor));
const shown = async (id: string, minor = 90) => (await rig.get(`/v2.1/servers/${id}`, at(minor))).json().server;

test("a server gets the given host name from 2.90 on, and a domain name from 2.94 on", async () => {
  const given = await create({ hostname: "Web-1" }, 90);
  expect(given.statusCode).toBe(202);
  expect(await shown(given.json().server.id)).toMatchObject({ name: "My web.1", [HOSTNAME]: "Web-1" });
  const domain = await create({ hostname: "web.example.org" }, 94);
  expect((await shown(domain.json().server.id))[HOSTNAME]).toBe("web.example.org");
  expect((await shown((await create({}, 90)).json().server.id))[HOSTNAME]).toBe("my-web-1");
  for (const [hostname, minor] of [
    ["web", 89],
    ["web.example.org", 93],
    ["-web", 90],
    ["a b", 94],
  ] as const) {
    const refused = await create({ hostname }, minor);
    expect([hostname, refused.statusCode]).toEqual([hostname, 400]);
    expect(refused.json().badRequest.message).toContain("hostname");
  }
});

test("several servers of one call cannot have a host name", async () => {
  const refused = await create({ hostname: "web", min_count: 2 }, 90);
  expect([refused.statusCode, refused.json().badRequest.message]).toEqual([
    ...[400, "Unable to allocate a single hostname to multiple instances"],
  ]);
  expect((await create({ hostname: "web", min_count: 1, max_count: 1 }, 90)).statusCode).toBe(202);
});

test("PUT changes the name and host name of a running server, and keeps its allocation", async () => {
  const id = await rig.bootActive("north", 0, { name: "former" });
  const put = (server: object, minor = 90, headers = {}) =>
    rig.put(`/v2.1/servers/${id}`, { server }, { ...at(minor), ...headers });
  const changed = await put({ name: "db", hostname: "db-1" });
  expect(changed.json().server).toMatchObject({ id, name: "db", [HOSTNAME]: "db-1", status: "ACTIVE" });
  expect(await shown(id)).toMatchObject({ name: "db", [HOSTNAME]: "db-1", status: "ACTIVE" });
  expect((await put({ name: "db2" }, 1)).statusCode).toBe(200);
  expect(await shown(id)).toMatchObject({ name: "db2", [HOSTNAME]: "db-1" });
  expect((await put({ hostname: "x.y" }, 93)).statusCode).toBe(400);
  expect((await put({ hostname: "xy" }, 89)).statusCode).toBe(400);
  const [holding] = await rig.cell("north").store.holdings([id]);
  expect(holding?.items).toHaveLength(1);
  const found = async (name: string) =>
    (await rig.get(`/v2.1/servers?name=${name}`, at(90))).json().servers.map((one: { id: string }) => one.id);
  expect([await found("db2"), await found("former")]).toEqual([[id], []]);
  rig.cell("north").dead = true;
  expect(await found("db2")).toEqual([id]);
});

test("PUT changes a server that has no host yet and one whose cell does not answer, and refuses an unknown server", async () => {
  const id = await rig.boot();
  expect((await rig.put(`/v2.1/servers/${id}`, { server: { name: "x" } }, at(90))).json().server.name).toBe("x");
  const running = await rig.bootActive("north", 0);
  rig.cell("north").dead = true;
  expect((await rig.put(`/v2.1/servers/${running}`, { server: { name: "y" } }, at(90))).statusCode).toBe(200);
  rig.cell("north").dead = false;
  await eventually("the cell is asked again", async () => (await shown(running)).status === "ACTIVE");
  expect(await shown(running)).toMatchObject({ name: "y", status: "ACTIVE" });
  expect((await rig.put(`/v2.1/servers/${crypto.randomUUID()}`, { server: {} }, at(90))).statusCode).toBe(404);
});
