import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../rigs/eventually.ts";
import { SnapshottedCell } from "../rigs/snapshotted-cell.ts";

let scene: SnapshottedCell;
beforeEach(() => {
  // Guests are compared each second of the cell's clock.
  scene = new SnapshottedCell({ speed: 4 });
});
afterEach(() => scene.cell.close());

const OFTEN = { auditHostsPerSecond: 20 };

/** The server runs on host-0 of two, and the database is backed up. Returns a function that restores it, with which the next conductor starts. */
async function backedUp(): Promise<() => Promise<unknown>> {
  const putBack = scene.cell.store.remember();
  return async () => {
    await scene.first.kill();
    putBack();
    await scene.cell.store.quarantine.renewIncarnation();
    return scene.cell.startConductor(2, OFTEN);
  };
}

/** Cinder has made a file for a snapshot, and the guest writes to it, while Cinder still waits for the host's part. */
async function switched(): Promise<{ readonly id: string; readonly file: string }> {
  scene.cinder.snapshotFiles.holds = true;
  const one = await scene.begin();
  await eventually("the guest to write to the new file", () => scene.used()?.[0] === one.file);
  return one;
}

test("a database that has forgotten a snapshot for which Cinder still waits learns the guest's file, and the snapshot is made", async () => {
  await scene.running();
  const restore = await backedUp();
  const { id, file } = await switched();
  await restore();
  await eventually("the spec to name the file", async () => (await scene.present()).file === file);
  scene.cinder.snapshotFiles.holds = false;
  scene.cinder.snapshotFiles.goOn(id);
  await eventually("the snapshot to be made", () => scene.statusOf(id) === "available");
  await scene.agree(file, scene.firstFile);
  await scene.cell.operate({ server: 1, kind: "hard-reboot" });
  await scene.agree(file, scene.firstFile);
});

test("the guest goes back to its former file if Cinder has given up a snapshot that the database has forgotten", async () => {
  await scene.running();
  const restore = await backedUp();
  const { id } = await switched();
  scene.cinder.snapshotFiles.giveUp(id);
  await restore();
  await eventually("the guest to go back", () => scene.used()?.[0] === scene.firstFile);
  await scene.agree(scene.firstFile);
  expect((await scene.cell.server(1)).fault?.message).toContain(`Cinder has given snapshot ${id} up`);
});

test.each([
  ["no file", false],
  ["the file of an earlier snapshot", true],
])("a database that names %s learns the file of a snapshot that Cinder has made", async (_, hasFormer) => {
  await scene.running();
  const former = hasFormer ? (await scene.made()).file : null;
  const restore = await backedUp();
  const { file } = await scene.made();
  await restore();
  await eventually("the spec to name the file", async () => (await scene.present()).file === file);
  await scene.agree(file, ...(former === null ? [] : [former]), scene.firstFile);
});

test("no guest is started without what was written to a file that the database has forgotten, also if its server is moved before its host was compared", async () => {
  await scene.running({ hosts: [0, 1] });
  const restore = await backedUp();
  const { id, file } = await switched();
  const begin = scene.cell.store.begin.bind(scene.cell.store);
  scene.cell.store.begin = async (begins) =>
    begins.every(({ write }) => write.stage === "announcing") ? begins.map(() => ({ kind: "changed" })) : begin(begins);
  await restore();
  await scene.cell.hostsUp(2);
  const revision = (await scene.cell.server(1)).revision + 10;
  await scene.cell.store.raiseRevisions([{ serverUuid: (await scene.cell.server(1)).uuid, revision }]);
  await scene.cell.operate({ server: 1, kind: "live-migrate", hosts: [1] });
  const { fault } = await scene.cell.rest(1);
  expect(fault?.message).toContain(`the guest writes to the file ${file}`);
  expect([scene.cell.runsOn(1), scene.used()?.[0], scene.statusOf(id)]).toEqual([["host-0"], file, "creating"]);
});

test("a guest that is behind the database keeps its file, and its server can be moved", async () => {
  await scene.running({ hosts: [0, 1], conductor: OFTEN });
  const { file: former } = await scene.made();
  const { id } = scene.cinder.putSnapshot(scene.volumeId, { status: "creating" });
  const file = scene.cinder.snapshotFiles.begin(scene.cinder.snapshotFiles.all.get(id)!);
  scene.cinder.snapshotFiles.report({ snapshotId: id, status: "creating", isDone: true });
  // The host was forced down before the guest had changed over.
  const { servers } = scene.cell.store;
  scene.cell.store.servers = async (uuids) =>
    (await servers.call(scene.cell.store, uuids)).map((server) => ({
      ...server,
      spec: { ...server.spec, volumes: server.spec.volumes.map((one) => ({ ...one, file })) },
    }));
  const read = scene.cell.store.hostRecords;
  let comparisons = 0;
  scene.cell.store.hostRecords = (hosts) => {
    comparisons += 1;
    return read.call(scene.cell.store, hosts);
  };
  await eventually("comparisons", () => comparisons > 3);
  expect([(await scene.cell.server(1)).taskState, scene.used()?.[0]]).toEqual([null, former]);
  await scene.cell.operate({ server: 1, kind: "live-migrate", hosts: [1] });
  expect(await scene.cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-1" });
  expect(scene.used()).toEqual([file, former, scene.firstFile]);
});
