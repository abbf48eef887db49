import { isDeepStrictEqual } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { eventually } from "../../rigs/eventually.ts";
import { ApiRig } from "./api-rig.ts";

const at = (minor: number) => ({ "openstack-api-version": `compute 2.${minor}` });

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start();
});
afterEach(() => rig.close());

const create = async (name: string, zone?: string): Promise<{ id: number; uuid: string }> => {
  const body = { aggregate: { name, ...(zone !== undefined && { availability_zone: zone }) } };
  const answer = await rig.post("/v2.1/os-aggregates", body, at(41));
  if (answer.statusCode !== 200) throw new Error(answer.body);
  return answer.json().aggregate;
};
const act = (id: number, body: unknown) => rig.post(`/v2.1/os-aggregates/${id}/action`, body);
/** The given aggregates of the hosts' roots in a cell. */
const mirrored = async (cell: string, uuids: readonly string[]) =>
  Object.fromEntries(
    (await rig.cell(cell).store.hostAdmin().operatorState(uuids))
      .filter((state) => state.aggregates.length > 0)
      .map((state) => [state.host, state.aggregates]),
  );

describe("os-aggregates", () => {
  test("bring the data of images to their hosts from 2.81 on, and refuse images twice and unknown aggregates", async () => {
    const { id } = await create("fast");
    const image = "155d900f-4e14-4e4c-a73d-069cbf4541e6";
    const cache = async (ids: readonly string[], { minor = 81, aggregate = id } = {}) => {
      const body = { cache: ids.map((one) => ({ id: one })) };
      return (await rig.post(`/v2.1/os-aggregates/${aggregate}/images`, body, at(minor))).statusCode;
    };
    expect(await cache([image])).toBe(202);
    expect(await cache([image], { minor: 80 })).toBe(404);
    expect(await cache([image], { aggregate: 999 })).toBe(404);
    expect([await cache([image, image]), await cache([]), await cache(["x"])]).toEqual([400, 400, 400]);
  });

  test("a created aggregate has neither hosts nor metadata in the answer, and its UUID from 2.41 on", async () => {
    const old = (await rig.post("/v2.1/os-aggregates", { aggregate: { name: " fast " } })).json().aggregate;
    expect(old).toEqual({
      ...{ id: old.id, name: "fast", availability_zone: null, created_at: old.created_at, updated_at: null },
      ...{ deleted: false, deleted_at: null },
    });
    expect(await create("zone", "east")).toMatchObject({ uuid: expect.any(String), availability_zone: "east" });
    expect((await rig.get("/v2.1/os-aggregates")).json().aggregates).toMatchObject([
      { name: "fast", hosts: [], metadata: {} },
      { name: "zone", hosts: [], metadata: { availability_zone: "east" } },
    ]);
  });

  test("refuses the same requests as Nova, with Nova's codes", async () => {
    const { id } = await create("fast");
    const codes = async (body: unknown) => (await rig.post("/v2.1/os-aggregates", body)).statusCode;
    expect(await codes({ aggregate: { name: "fast" } })).toBe(409);
    expect(await codes({ aggregate: { name: "" } })).toBe(400);
    expect(await codes({ aggregate: { name: "x", availability_zone: "a:b" } })).toBe(400);
    expect(await codes({ aggregate: { name: "x", hosts: [] } })).toBe(400);
    expect((await rig.get("/v2.1/os-aggregates/999")).statusCode).toBe(404);
    expect((await rig.get("/v2.1/os-aggregates/none")).statusCode).toBe(400);
    expect((await rig.delete("/v2.1/os-aggregates/999")).statusCode).toBe(404);
    expect((await act(id, { add_host: { host: "nobody" } })).statusCode).toBe(404);
    const absent = await act(id, { remove_host: { host: "host-0" } });
    expect([absent.statusCode, absent.json().itemNotFound.message]).toEqual([
      404,
      `Cannot remove host host-0 in aggregate ${id}`,
    ]);
    expect((await act(id, { add_host: { host: "host-0" }, set_metadata: { metadata: {} } })).statusCode).toBe(400);
    expect((await rig.put(`/v2.1/os-aggregates/${id}`, { aggregate: { availability_zone: null } })).statusCode).toBe(
      400,
    );
    await act(id, { add_host: { host: "host-0" } });
    expect((await act(id, { add_host: { host: "host-0" } })).statusCode).toBe(409);
    expect((await rig.delete(`/v2.1/os-aggregates/${id}`)).statusCode).toBe(400);
    await act(id, { remove_host: { host: "host-0" } });
    expect((await rig.delete(`/v2.1/os-aggregates/${id}`)).statusCode).toBe(200);
  });

  test("metadata is merged; null removes a key", async () => {
    const { id } = await create("fast");
    await act(id, { set_metadata: { metadata: { ssd: "true", rack: "r1" } } });
    const answer = await act(id, { set_metadata: { metadata: { rack: null } } });
    expect(answer.json().aggregate.metadata).toEqual({ ssd: "true" });
  });

  test("hosts are mirrored into the placement aggregates of their cells in the same call", async () => {
    const { id, uuid } = await create("fast");
    await act(id, { add_host: { host: "host-1" } });
    expect((await act(id, { add_host: { host: "host-4" } })).json().aggregate.hosts).toEqual(["host-1", "host-4"]);
    expect(await mirrored("north", [uuid])).toEqual({ "host-1": [uuid] });
    expect(await mirrored("south", [uuid])).toEqual({ "host-4": [uuid] });
    await act(id, { remove_host: { host: "host-1" } });
    expect(await mirrored("north", [uuid])).toEqual({});
  });

  test("changes that a cell missed while it was away are written when it is back", async () => {
    const { id, uuid } = await create("fast");
    await act(id, { add_host: { host: "host-4" } });
    rig.cell("south").dead = true;
    const removed = await act(id, { remove_host: { host: "host-4" } });
    expect(removed.statusCode).toBe(200);
    expect(await mirrored("south", [uuid])).toEqual({ "host-4": [uuid] });
    rig.cell("south").dead = false;
    await eventually("the mirror", async () => Object.keys(await mirrored("south", [uuid])).length === 0);
  });

  test("sync-aggregates lists the differences, and repairs them", async () => {
    const { id, uuid } = await create("fast");
    await act(id, { add_host: { host: "host-1" } });
    const [host] = await rig.cell("north").store.hosts();
    const rootProvider = host?.rootProvider ?? "";
    const spoil = { rootProvider, add: [uuid], remove: [] };
    const sync = async (dryRun: boolean) =>
      (await rig.post("/berth/v1/sync-aggregates", { dry_run: dryRun })).json().changed;
    const expected = [
      { cell: "north", host: "host-0", aggregates_added: [], aggregates_removed: [uuid], ratios: null },
    ];
    // The api's own first round, seconds after its start, may be quicker.
    await eventually("both calls to see the difference", async () => {
      await rig.cell("north").store.hostAdmin().mirrorAggregates([spoil]);
      return isDeepStrictEqual([await sync(true), await sync(false)], [expected, expected]);
    });
    expect(await sync(false)).toEqual([]);
    expect(await mirrored("north", [uuid])).toEqual({ "host-1": [uuid] });
  });

  test("the zone of a host with servers cannot change", async () => {
    const east = await create("east", "zone-east");
    const plain = await create("plain");
    await rig.bootActive("north", 1);
    expect((await act(east.id, { add_host: { host: "host-1" } })).statusCode).toBe(409);
    await act(plain.id, { add_host: { host: "host-1" } });
    const zone = { set_metadata: { metadata: { availability_zone: "zone-east" } } };
    expect((await act(plain.id, zone)).statusCode).toBe(400);
    await act(east.id, { add_host: { host: "host-2" } });
    await rig.bootActive("north", 2);
    expect((await act(east.id, { remove_host: { host: "host-2" } })).statusCode).toBe(409);
  });

  test("are only for admins", async () => {
    await rig.close();
    rig = await ApiRig.start({ auth: "noauth2" });
    const headers = { "x-auth-token": "alice:project" };
    expect((await rig.get("/v2.1/os-aggregates", headers)).statusCode).toBe(403);
    expect((await rig.get("/berth/v1/settings", headers)).statusCode).toBe(403);
    expect((await rig.get("/berth/v1/settings")).statusCode).toBe(401);
    expect((await rig.get("/v2.1/os-availability-zone/detail", headers)).statusCode).toBe(403);
    expect((await rig.get("/v2.1/os-availability-zone", headers)).statusCode).toBe(200);
  });
});

describe("os-availability-zone", () => {
  test("lists the zones of hosts, including the default one; a zone without an enabled host is not available", async () => {
    const east = await create("east", "zone-east");
    await act(east.id, { add_host: { host: "host-1" } });
    const list = async (path = "") => (await rig.get(`/v2.1/os-availability-zone${path}`)).json().availabilityZoneInfo;
    expect(await list()).toEqual([
      { zoneName: "nova", zoneState: { available: true }, hosts: null },
      { zoneName: "zone-east", zoneState: { available: true }, hosts: null },
    ]);
    expect((await list("/detail"))[1].hosts).toMatchObject({
      "host-1": { "nova-compute": { available: true, active: true } },
    });
    await rig.put("/v2.1/os-services/disable", { host: "host-1", binary: "nova-compute" });
    expect((await list())[1]).toEqual({ zoneName: "zone-east", zoneState: { available: false }, hosts: null });
  });
});

test("a server shows the zone of its host, whatever zone it asked for", async () => {
  const { id } = await create("east", "zone-east");
  await act(id, { add_host: { host: "host-1" } });
  const zoneOf = async (uuid: string) =>
    (await rig.get(`/v2.1/servers/${uuid}`)).json().server["OS-EXT-AZ:availability_zone"];
  const there = await rig.bootActive("north", 1);
  const elsewhere = await rig.bootActive("north", 2);
  await eventually("the zones are known", async () => (await zoneOf(there)) === "zone-east");
  expect(await zoneOf(elsewhere)).toBe("nova");
  expect(await zoneOf(await rig.boot({ availability_zone: "zone-east" }))).toBe("zone-east");
});

describe("os-services", () => {
  const services = async (minor: number) => (await rig.get("/v2.1/os-services?host=host-1", at(minor))).json().services;

  test("a host is disabled and enabled by its service's id, together with the trait on its root", async () => {
    const [service] = await services(53);
    expect(service).toMatchObject({ status: "enabled", state: "up", zone: "nova", forced_down: false });
    const path = `/v2.1/os-services/${service.id}`;
    const disabled = await rig.put(path, { status: "disabled", disabled_reason: "smells" }, at(53));
    expect(disabled.json().service).toMatchObject({ status: "disabled", disabled_reason: "smells" });
    expect(await rig.cell("north").store.hostAdmin().adminHosts(["host-1"])).toMatchObject([
      { disabled: true, disabledReason: "smells" },
    ]);
    expect((await rig.put(path, { status: "enabled", disabled_reason: "x" }, at(53))).statusCode).toBe(400);
    expect((await rig.put(path, {}, at(53))).statusCode).toBe(400);
    expect((await rig.put(path, { status: "enabled" }, at(53))).json().service).toMatchObject({
      ...{ status: "enabled", disabled_reason: null },
    });
    const nobody = "/v2.1/os-services/00000000-0000-4000-8000-000000000000";
    expect((await rig.put(nobody, { status: "enabled" }, at(53))).statusCode).toBe(404);
    expect((await rig.put("/v2.1/os-services/7", { status: "enabled" }, at(53))).statusCode).toBe(400);
  });

  test("hosts of a cell that does not answer are listed as UNKNOWN from 2.69 on, from the names in the API database", async () => {
    await eventually("the hosts are kept", async () => (await rig.hostMap.hostsOf("north")).length > 0);
    const [service] = await services(53);
    rig.cell("north").dead = true;
    expect(await services(69)).toEqual([{ binary: "nova-compute", host: "host-1", status: "UNKNOWN" }]);
    expect(await services(68)).toEqual([]);
    const all = (await rig.get("/v2.1/os-services", at(69))).json().services;
    const unknown = all.filter((one: { status: string }) => one.status === "UNKNOWN");
    expect(unknown.map((one: { host: string }) => one.host)).toEqual(["host-0", "host-1", "host-2"]);
    expect(
      all.filter((one: { host: string; state?: string }) => one.state === "up" && one.host === "host-3"),
    ).toHaveLength(1);
    const ofSchedulers = await rig.get("/v2.1/os-services?binary=nova-scheduler", at(69));
    expect(ofSchedulers.json().services).toEqual([]);
    const changed = await rig.put(`/v2.1/os-services/${service.id}`, { status: "disabled" }, at(69));
    expect([changed.statusCode, changed.json().serviceUnavailable.message]).toEqual([
      ...[503, "The cell north, which may have the service, does not answer."],
    ]);
  });

  test("schedulers and conductors are listed, and cannot be changed", async () => {
    await rig.softState.announce("scheduler-1", 60_000);
    const at0 = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
    const figures = { at: at0, placed: 0, refused: 0, racesLost: 0, taken: 0, queuedMs: 0 };
    await rig.softState.recordFigures("scheduler-1", figures, 60_000);
    const list = async (binary: string) =>
      (await rig.get(`/v2.1/os-services?binary=${binary}`, at(53))).json().services;
    const [scheduler] = await list("nova-scheduler");
    expect(scheduler).toMatchObject({ host: "scheduler-1", zone: "internal", state: "up" });
    expect(scheduler.updated_at).toBe("2026-01-02T03:04:05.678000");
    const updated_at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/);
    expect(await list("nova-conductor")).toMatchObject([
      { host: "conductor", updated_at },
      { host: "conductor", updated_at },
    ]);
    const changed = await rig.put(`/v2.1/os-services/${scheduler.id}`, { status: "disabled" }, at(53));
    expect(changed.statusCode).toBe(400);
  });

  test("the older actions name host and binary", async () => {
    const one = { host: "host-1", binary: "nova-compute" };
    const put = (action: string, body: object, minor = 11) => rig.put(`/v2.1/os-services/${action}`, body, at(minor));
    expect((await put("disable-log-reason", { ...one, disabled_reason: "r" })).json()).toEqual({
      service: { ...one, status: "disabled", disabled_reason: "r" },
    });
    expect((await put("enable", one)).json()).toEqual({ service: { ...one, status: "enabled" } });
    expect((await put("force-down", { ...one, forced_down: true })).json()).toEqual({
      service: { ...one, forced_down: true },
    });
    expect((await services(11))[0]).toMatchObject({ state: "down", forced_down: true });
    expect((await put("force-down", { ...one, forced_down: true }, 10)).statusCode).toBe(404);
    expect((await put("disable-log-reason", one)).statusCode).toBe(400);
    expect((await put("explode", one)).statusCode).toBe(404);
    expect((await put("enable", { ...one, host: "nobody" })).statusCode).toBe(404);
    expect((await put("enable", { ...one, binary: "nova-conductor" })).statusCode).toBe(400);
    expect((await put("enable", { binary: "nova-compute" })).statusCode).toBe(400);
  });
});
