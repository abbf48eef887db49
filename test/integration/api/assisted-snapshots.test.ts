import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { OwnServerVolumes } from "../../../services/api/compute/server-volumes/own-server-volumes.ts";
import { Fault } from "../../../services/api/http/fault.ts";
import { ApiRig } from "./api-rig.ts";
import { ADMIN, attachmentCalls } from "./attachment-calls.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2", volumes: "simple" });
  const volumes = rig.volumes.volumes.bind(rig.volumes);
  rig.volumes.volumes = async (ids) => (await volumes(ids)).map((one) => ({ ...one, inCinder: true }));
});
afterEach(() => rig.close());

const { call, newVolume, active, north, openTask, finish, attached } = attachmentCalls(() => rig);
const URL = "/v2.1/os-assisted-volume-snapshots";
const SNAPSHOT = randomUUID();
const CREATE = { snapshot_id: SNAPSHOT, type: "qcow2", new_file: "new-file" };
const create = (volume: string, info: object = {}, who = ADMIN) =>
  call("POST", URL, { snapshot: { volume_id: volume, create_info: { ...CREATE, ...info } } }, who);
const remove = (info: unknown, query = "", minor = 89) => {
  const text = typeof info === "string" ? info : JSON.stringify(info);
  return call("DELETE", `${URL}/${SNAPSHOT}?delete_info=${encodeURIComponent(text)}${query}`, undefined, ADMIN, minor);
};

async function withVolume(): Promise<{ readonly server: string; readonly volume: string }> {
  const [server, volume] = [await active(), await newVolume()];
  await attached(server, volume);
  return { server, volume };
}

test("a guest is switched to the file of a new snapshot, and its files are merged when one is deleted", async () => {
  const { server, volume } = await withVolume();
  const made = await create(volume, { id: SNAPSHOT });
  expect(made).toEqual({ status: 200, json: { snapshot: { id: SNAPSHOT, volumeId: volume } } });
  const names = { snapshotId: SNAPSHOT, newFile: "new-file", fileToMerge: "", mergeTarget: "" };
  expect(openTask(server)).toMatchObject({
    server: { volumes: [{ volumeId: volume, file: "new-file" }] },
    work: { value: { kind: "snapshot-volume", snapshot: names, before: { volumes: [{ file: "" }] } } },
  });
  // A client that has not heard the answer asks twice.
  const again = await create(volume);
  expect([again.status, again.json.badRequest.message]).toEqual([400, expect.stringContaining("snapshotting_volume")]);
  await finish(server, "announcing", "succeed");
  expect((await north().servers([server]))[0]?.spec.volumes).toMatchObject([{ file: "new-file" }]);

  const info = { type: "qcow2", volume_id: volume, file_to_merge: null, merge_target_file: null };
  expect(await remove(info)).toEqual({ status: 204, json: null });
  expect(openTask(server)).toMatchObject({
    server: { volumes: [{ file: "new-file" }] },
    work: { value: { kind: "merge-volume", snapshot: { ...names, newFile: "" } } },
  });
  await finish(server, "announcing", "succeed");
  expect((await remove({ ...info, file_to_merge: "a", merge_target_file: "b" })).status).toBe(204);
  expect(openTask(server)).toMatchObject({
    work: { value: { snapshot: { fileToMerge: "a", mergeTarget: "b" } } },
  });
  await finish(server, "denying", "give-up");
  expect((await north().servers([server]))[0]).toMatchObject({
    status: "ACTIVE",
    spec: { volumes: [{ file: "new-file" }] },
  });
});

test("Cinder hears that nothing is merged yet before a deletion begins, and a deletion that cannot begin tells it nothing", async () => {
  const { server, volume } = await withVolume();
  const told: string[] = [];
  let isSilent = false;
  const beginMerge = vi.spyOn(OwnServerVolumes.prototype, "beginMerge").mockImplementation(async (id) => {
    expect(openTask(server)).toBeUndefined();
    if (isSilent) throw new Fault(503, "Cinder does not answer.");
    told.push(id);
  });
  const info = { type: "qcow2", volume_id: volume, file_to_merge: null, merge_target_file: null };
  isSilent = true;
  expect((await remove(info)).status).toBe(503);
  isSilent = false;
  expect((await remove(info)).status).toBe(204);
  // A client that has not heard the answer asks twice, when the host may have merged the files already.
  expect((await remove(info)).status).toBe(400);
  expect(told).toEqual([SNAPSHOT]);
  beginMerge.mockRestore();
});

test("a given-up snapshot leaves the server the file that it had", async () => {
  const { server, volume } = await withVolume();
  expect(await create(volume)).toMatchObject({ status: 200, json: { snapshot: { id: null } } });
  await finish(server, "returning", "denying", "give-up");
  expect((await north().servers([server]))[0]).toMatchObject({ status: "ACTIVE", spec: { volumes: [{ file: "" }] } });
});

test("what cannot be done is refused with 400, as Cinder's drivers expect it, and others than services with 403", async () => {
  const { volume } = await withVolume();
  const free = await newVolume();
  expect((await create(free)).json.badRequest.message).toBe(`No volume Block Device Mapping with id ${free}.`);
  expect((await create(volume, { type: "raw" })).status).toBe(400);
  expect((await create(volume, { more: 1 })).status).toBe(400);
  expect((await create(volume, {}, "ann:p")).status).toBe(403);
  const info = { type: "qcow2", volume_id: volume, file_to_merge: null, merge_target_file: null };
  const wrong = ["{", {}, { ...info, volume_id: 3 }, { ...info, volume_id: free }, { ...info, merge_target_file: "b" }];
  for (const one of wrong) expect((await remove(one)).status).toBe(400);
  expect((await remove(info, "&more=1", 75)).status).toBe(400);
  expect((await call("DELETE", `${URL}/${SNAPSHOT}`)).status).toBe(400);
  expect((await remove(info, "&more=1", 74)).status).toBe(204);
});
