import { randomUUID } from "node:crypto";
import { afterEach, expect, test } from "vitest";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
afterEach(() => rig.close());

const as = (project: string, minor = 35) => ({
  "x-project-id": project,
  "openstack-api-version": `compute 2.${minor}`,
});
const create = (volume: object, project = "p") => rig.post("/v2.1/os-volumes", { volume }, as(project));
const get = async (path: string, project = "p") => {
  const answer = await rig.get(`/v2.1/${path}`, as(project));
  return [answer.statusCode, answer.json()] as const;
};

test("Berth's own volumes are made, listed, shown and deleted with Nova's fields and statuses", async () => {
  rig = await ApiRig.start({ volumes: "simple", volumesPerProject: { volumes: 2, gib: 100 } });
  const answer = await create({
    size: "1",
    display_name: "data",
    display_description: "d",
    metadata: { Type: "work" },
  });
  const { volume } = answer.json();
  expect([answer.statusCode, volume]).toEqual([
    200,
    {
      ...{ id: volume.id, status: "available", size: 1, availabilityZone: "nova", attachments: [{}] },
      ...{ displayName: "data", displayDescription: "d", volumeType: "__DEFAULT__", snapshotId: null },
      ...{ createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/), metadata: { Type: "work" } },
    },
  ]);
  expect(answer.headers.location).toMatch(new RegExp(`^http://.*/v2.1/os-volumes/${volume.id}$`));
  expect(await get(`os-volumes/${volume.id}`)).toEqual([200, { volume }]);
  const { volume: second } = (await create({ size: 2 })).json();
  expect(second).toMatchObject({ displayName: null, displayDescription: null, metadata: {} });
  for (const list of ["os-volumes", "os-volumes/detail"]) {
    expect(await get(list)).toEqual([200, { volumes: [second, volume] }]);
    expect(await get(`${list}?limit=1&offset=1&all_tenants=1`)).toEqual([200, { volumes: [volume] }]);
    expect(await get(list, "q")).toEqual([200, { volumes: [] }]);
    expect((await get(`${list}?limit=-1`))[0]).toBe(400);
  }
  expect((await create({ size: 1 })).statusCode).toBe(403);
  expect((await rig.delete(`/v2.1/os-volumes/${volume.id}`, as("p"))).statusCode).toBe(202);
  expect(await get(`os-volumes/${volume.id}`)).toEqual([
    404,
    { itemNotFound: { code: 404, message: `Volume ${volume.id} could not be found.` } },
  ]);
});

test("a bad size, an unknown field, type or snapshot are refused, and so is what does not exist", async () => {
  rig = await ApiRig.start({ volumes: "simple" });
  for (const size of ["#$%", "", 0, "0", -1, 1.5, null, 4_000_000_000])
    expect([size, (await create({ size, display_name: "v" })).statusCode]).toEqual([size, 400]);
  expect((await create({})).statusCode).toBe(400);
  expect((await create({ size: "0" })).json().badRequest.message).toMatch(
    /^Invalid input received: Invalid input for field\/attribute size. Value: 0/,
  );
  expect((await create({ size: 1, name: "v" })).statusCode).toBe(400);
  expect((await create({ size: 1, volume_type: "gold" })).json().badRequest.message).toBe(
    "Invalid input received: Volume type with name gold could not be found.",
  );
  const none = randomUUID();
  const gone = await create({ size: 1, snapshot_id: none });
  expect([gone.statusCode, gone.json().itemNotFound.message]).toEqual([404, `Snapshot ${none} could not be found.`]);
  for (const kind of ["os-volumes", "os-snapshots"])
    for (const id of [none, "invalid-7", ""]) {
      const path = `/v2.1/${kind}/${id}`;
      const answers = [await rig.get(path, as("p")), await rig.delete(path, as("p"))];
      expect([path, ...answers.map(({ statusCode }) => statusCode)]).toEqual([path, 404, 404]);
    }
  expect((await get("os-snapshots"))[1]).toEqual({ snapshots: [] });
  const { id } = (await create({ size: 1 })).json().volume;
  const snapshot = await rig.post("/v2.1/os-snapshots", { snapshot: { volume_id: id } }, as("p"));
  expect([snapshot.statusCode, snapshot.json().badRequest.message]).toEqual([
    400,
    expect.stringContaining("Berth's own volumes have none"),
  ]);
});

test("a caller reaches no volume of another project", async () => {
  rig = await ApiRig.start({ volumes: "simple", auth: "noauth2" });
  const by = (token: string) => ({ "x-auth-token": token, "openstack-api-version": "compute 2.35" });
  const { id } = (await rig.post("/v2.1/os-volumes", { volume: { size: 1 } }, by("ann:one"))).json().volume;
  const url = `/v2.1/os-volumes/${id}`;
  const snapshot = { snapshot: { volume_id: id } };
  expect((await rig.get(url, by("bob:two"))).statusCode).toBe(404);
  expect((await rig.delete(url, by("bob:two"))).statusCode).toBe(404);
  expect((await rig.post("/v2.1/os-snapshots", snapshot, by("bob:two"))).statusCode).toBe(404);
  expect((await rig.get("/v2.1/os-volumes", by("bob:two"))).json()).toEqual({ volumes: [] });
  expect((await rig.get(url, by("ann:one"))).statusCode).toBe(200);
  expect((await rig.delete(url, by("ann:one"))).statusCode).toBe(202);
});

test("the routes end after 2.35", async () => {
  rig = await ApiRig.start({ volumes: "simple" });
  for (const path of ["os-volumes", "os-volumes/detail", "os-snapshots", "os-snapshots/detail"]) {
    expect((await rig.get(`/v2.1/${path}`, as("p"))).statusCode).toBe(200);
    expect((await rig.get(`/v2.1/${path}`, as("p", 36))).statusCode).toBe(404);
  }
});

test("without volumes there are none, and none can be made", async () => {
  rig = await ApiRig.start({ volumes: "none" });
  expect(await get("os-volumes")).toEqual([200, { volumes: [] }]);
  expect(await get("os-snapshots/detail")).toEqual([200, { snapshots: [] }]);
  expect((await get(`os-volumes/${randomUUID()}`))[0]).toBe(404);
  expect((await rig.delete(`/v2.1/os-volumes/${randomUUID()}`, as("p"))).statusCode).toBe(404);
  const refused = await create({ size: 1 });
  expect([refused.statusCode, refused.json().badRequest.message]).toEqual([
    400,
    expect.stringContaining("BERTH_VOLUMES"),
  ]);
  const snapshot = await rig.post("/v2.1/os-snapshots", { snapshot: { volume_id: randomUUID() } }, as("p"));
  expect(snapshot.statusCode).toBe(404);
});
